"""BART (Lewis et al. 2020) and Marian (Junczys-Dowmunt et al. 2018): encoder-decoders, post-norm.

BART learns its positions and norms its embeddings; Marian has sines and cosines.
"""

from typing import Any

from glassformer.errors import CheckpointError
from glassformer.models.checkpoints.architectures.architecture import (
    FOREIGN_ACTIVATIONS,
    Architecture,
    Foreign,
)
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions


def _blocks(stack: str) -> Columns:
    ours, theirs = stack + ".blocks.{i}.", "model." + stack + ".layers.{i}."
    return (
        (ours + "attention.qkv.{x}", theirs + "self_attn.[q|k|v]_proj.{x}"),
        (ours + "attention.out.{x}", theirs + "self_attn.out_proj.{x}"),
        (ours + "attention_norm.{x}", theirs + "self_attn_layer_norm.{x}"),
        (ours + "feed_forward.up.{x}", theirs + "fc1.{x}"),
        (ours + "feed_forward.down.{x}", theirs + "fc2.{x}"),
        (ours + "feed_forward_norm.{x}", theirs + "final_layer_norm.{x}"),
    )


NAMES: Columns = (
    (
        "embedding.weight",
        "model.shared.weight = model.encoder.embed_tokens.weight "
        "= model.decoder.embed_tokens.weight",
    ),
    ("encoder.positions.weight", "model.encoder.embed_positions.weight[2:]"),
    ("decoder.positions.weight", "model.decoder.embed_positions.weight[2:]"),
    ("encoder.embedding_norm.{x}", "model.encoder.layernorm_embedding.{x}"),
    ("decoder.embedding_norm.{x}", "model.decoder.layernorm_embedding.{x}"),
    *_blocks("encoder"),
    *_blocks("decoder"),
    ("decoder.blocks.{i}.cross.q.{x}", "model.decoder.layers.{i}.encoder_attn.q_proj.{x}"),
    ("decoder.blocks.{i}.cross.kv.{x}", "model.decoder.layers.{i}.encoder_attn.[k|v]_proj.{x}"),
    ("decoder.blocks.{i}.cross.out.{x}", "model.decoder.layers.{i}.encoder_attn.out_proj.{x}"),
    ("decoder.blocks.{i}.cross_norm.{x}", "model.decoder.layers.{i}.encoder_attn_layer_norm.{x}"),
    ("head.weight", "lm_head.weight"),
    ("head.bias", "final_logits_bias[0]"),
)


def _read(c: Foreign, names: set[str], *, positions: Positions, embedding_norm: bool) -> Config:
    hidden = c.number("dropout", 0.1)
    return Config(
        family="encoder_decoder",
        vocab_size=c.whole("vocab_size"),
        dim=c.whole("d_model"),
        n_layers=c.whole("encoder_layers"),
        n_decoder_layers=c.whole("decoder_layers"),
        n_heads=c.require_equal("encoder_attention_heads", "decoder_attention_heads", 16),
        hidden_dim=c.require_equal("encoder_ffn_dim", "decoder_ffn_dim", 4096),
        max_len=c.whole("max_position_embeddings", 1024),
        activation=c.activation("activation_function", "gelu"),
        positions=positions,
        norms=Norms(place="post", final=False, embedding=embedding_norm),
        dropout=Dropout(
            embedding=hidden,
            residual=hidden,
            weights=c.number("attention_dropout", 0.0),
            hidden=c.number("activation_dropout", 0.0),
        ),
        output=Output(tied=c.flag("tie_word_embeddings", True), bias="final_logits_bias" in names),
        scaled_embedding=c.flag("scale_embedding", False),
    )


def _read_bart(c: Foreign, names: set[str]) -> Config:
    if any(name.startswith("classification_head.") for name in names):
        raise CheckpointError(
            "Of BART models glassformer knows those that write (BartForConditionalGeneration); "
            "this one classifies."
        )
    return _read(c, names, positions=Positions(kind="learned"), embedding_norm=True)


def _read_marian(c: Foreign, names: set[str]) -> Config:
    c.require("share_encoder_decoder_embeddings", True)
    c.require("decoder_vocab_size", c.whole("vocab_size"))
    positions = Positions(kind="sinusoidal", layout="half")
    return _read(c, names, positions=positions, embedding_norm=False)


def _write(config: Config) -> dict[str, Any]:
    return {
        "is_encoder_decoder": True,
        "vocab_size": config.vocab_size,
        "d_model": config.dim,
        "encoder_layers": config.n_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.n_heads,
        "decoder_attention_heads": config.n_heads,
        "encoder_ffn_dim": config.hidden_dim,
        "decoder_ffn_dim": config.hidden_dim,
        "max_position_embeddings": config.max_len,
        "activation_function": FOREIGN_ACTIVATIONS[config.activation],
        "dropout": config.dropout.residual,
        "attention_dropout": config.dropout.weights,
        "activation_dropout": config.dropout.hidden,
        "scale_embedding": config.scaled_embedding,
        "tie_word_embeddings": config.output.tied,
    }


def _write_bart(config: Config) -> dict[str, Any]:
    return {"architectures": ["BartForConditionalGeneration"], **_write(config)}


def _write_marian(config: Config) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"],
        **_write(config),
        "decoder_vocab_size": config.vocab_size,
        "share_encoder_decoder_embeddings": True,
    }


BART = Architecture(
    model_type="bart",
    prefix="model.",
    columns=NAMES,
    read=_read_bart,
    write=_write_bart,
    ignored=r"model\.(encoder|decoder)\.version",
)
MARIAN = Architecture(
    model_type="marian",
    prefix="model.",
    columns=NAMES,
    read=_read_marian,
    write=_write_marian,
    ignored=r"model\.(encoder|decoder)\.embed_positions\.weight",  # sines and cosines, computed
)
