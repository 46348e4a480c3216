"""T5 (Raffel et al. 2020): encoder and decoder that know distances, not places.

Scores are not divided by √D; that is folded into the initial weights. Version 1.1 has a gate in the
feed-forward network and an output matrix of its own.
"""

from typing import Any

from glassformer.layers.feed_forward import Activation
from glassformer.models.checkpoints.architectures.architecture import Architecture, Foreign
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions


def _blocks(stack: str, feed_forward: int, up: str) -> Columns:
    ours, theirs = stack + ".blocks.{i}.", stack + ".block.{i}.layer."
    last = f"{theirs}{feed_forward}."
    return (
        (ours + "attention_norm.weight", theirs + "0.layer_norm.weight"),
        (ours + "attention.qkv.weight", theirs + "0.SelfAttention.[q|k|v].weight"),
        (ours + "attention.out.weight", theirs + "0.SelfAttention.o.weight"),
        (ours + "feed_forward_norm.weight", last + "layer_norm.weight"),
        (ours + "feed_forward.up.weight", last + f"DenseReluDense.{up}.weight"),
        (ours + "feed_forward.down.weight", last + "DenseReluDense.wo.weight"),
        (
            f"{stack}.buckets",
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        ),
        (f"{stack}.final_norm.weight", f"{stack}.final_layer_norm.weight"),
    )


CROSS: Columns = (
    ("decoder.blocks.{i}.cross_norm.weight", "decoder.block.{i}.layer.1.layer_norm.weight"),
    ("decoder.blocks.{i}.cross.q.weight", "decoder.block.{i}.layer.1.EncDecAttention.q.weight"),
    (
        "decoder.blocks.{i}.cross.kv.weight",
        "decoder.block.{i}.layer.1.EncDecAttention.[k|v].weight",
    ),
    ("decoder.blocks.{i}.cross.out.weight", "decoder.block.{i}.layer.1.EncDecAttention.o.weight"),
)


def _names(up: str) -> Columns:
    return (
        (
            "embedding.weight",
            "shared.weight = encoder.embed_tokens.weight = decoder.embed_tokens.weight",
        ),
        *_blocks("encoder", 1, up),
        *_blocks("decoder", 2, up),
        *CROSS,
        ("head.weight", "lm_head.weight"),
    )


ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gated-gelu": "gelu_tanh",
    "gated-silu": "silu",
}


def _read(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    activation = c.word("feed_forward_proj", "relu", ACTIVATIONS)
    share, dim = c.number("dropout_rate", 0.1), c.whole("d_model")
    n_layers = c.whole("num_layers")
    # Older files say by tie_word_embeddings whether the last hidden states are scaled.
    scaled = c.flag("scale_decoder_outputs", c.flag("tie_word_embeddings", True))
    return Config(
        family="encoder_decoder",
        vocab_size=c.whole("vocab_size"),
        dim=dim,
        n_layers=n_layers,
        n_decoder_layers=c.whole("num_decoder_layers", n_layers),
        n_heads=c.whole("num_heads"),
        head_dim=c.whole("d_kv", 64),
        hidden_dim=c.whole("d_ff"),
        max_len=c.whole("n_positions", 512),
        activation=ACTIVATIONS[activation],
        gated=activation.startswith("gated-"),
        biases="none",
        positions=Positions(
            kind="relative",
            n_buckets=c.whole("relative_attention_num_buckets", 32),
            max_distance=c.whole("relative_attention_max_distance", 128),
        ),
        norms=Norms(kind="rms", eps=c.number("layer_norm_epsilon", 1e-6)),
        dropout=Dropout.everywhere(share),
        output=Output(tied=c.flag("tie_word_embeddings", True), scale=dim**-0.5 if scaled else 1.0),
        attention_scale=1.0,
    )


def _write(config: Config) -> dict[str, Any]:
    activations = {(ours, name.startswith("gated-")): name for name, ours in ACTIVATIONS.items()}
    return {
        "architectures": ["T5ForConditionalGeneration"],
        "is_encoder_decoder": True,
        "vocab_size": config.vocab_size,
        "d_model": config.dim,
        "d_kv": config.head_dim,
        "d_ff": config.hidden_dim,
        "num_layers": config.n_layers,
        "num_decoder_layers": config.decoder_layers,
        "num_heads": config.n_heads,
        "n_positions": config.max_len,
        "relative_attention_num_buckets": config.positions.n_buckets,
        "relative_attention_max_distance": config.positions.max_distance,
        "layer_norm_epsilon": config.norms.eps,
        "feed_forward_proj": activations.get((config.activation, config.gated)),
        "dropout_rate": config.dropout.residual,
        "tie_word_embeddings": config.output.tied,
        "scale_decoder_outputs": config.output.scale != 1.0,
    }


T5 = Architecture(
    model_type="t5",
    prefix="",
    columns=_names("wi"),
    gated_columns=_names("[wi_0|wi_1]"),
    read=_read,
    write=_write,
    # a bias that the first versions saved and never used
    ignored=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
)
