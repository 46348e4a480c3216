"""GPT-2 (Radford et al. 2019): a decoder with learned positions. Its matrices are transposed."""

from typing import Any

from glassformer.models.checkpoints.architectures.architecture import (
    FOREIGN_ACTIVATIONS,
    Architecture,
    Foreign,
)
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions

NAMES: Columns = (
    ("embedding.weight", "transformer.wte.weight"),
    ("decoder.positions.weight", "transformer.wpe.weight"),
    ("decoder.blocks.{i}.attention_norm.{x}", "transformer.h.{i}.ln_1.{x}"),
    ("decoder.blocks.{i}.attention.qkv.weight", "transformer.h.{i}.attn.c_attn.weight.T"),
    ("decoder.blocks.{i}.attention.qkv.bias", "transformer.h.{i}.attn.c_attn.bias"),
    ("decoder.blocks.{i}.attention.out.weight", "transformer.h.{i}.attn.c_proj.weight.T"),
    ("decoder.blocks.{i}.attention.out.bias", "transformer.h.{i}.attn.c_proj.bias"),
    ("decoder.blocks.{i}.feed_forward_norm.{x}", "transformer.h.{i}.ln_2.{x}"),
    ("decoder.blocks.{i}.feed_forward.up.weight", "transformer.h.{i}.mlp.c_fc.weight.T"),
    ("decoder.blocks.{i}.feed_forward.up.bias", "transformer.h.{i}.mlp.c_fc.bias"),
    ("decoder.blocks.{i}.feed_forward.down.weight", "transformer.h.{i}.mlp.c_proj.weight.T"),
    ("decoder.blocks.{i}.feed_forward.down.bias", "transformer.h.{i}.mlp.c_proj.bias"),
    ("decoder.final_norm.{x}", "transformer.ln_f.{x}"),
    ("head.weight", "lm_head.weight"),
)


def _read(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    c.require("scale_attn_by_inverse_layer_idx", False)
    c.require("add_cross_attention", False)
    dim = c.whole("n_embd")
    return Config(
        family="decoder",
        vocab_size=c.whole("vocab_size"),
        dim=dim,
        n_layers=c.whole("n_layer"),
        n_heads=c.whole("n_head"),
        hidden_dim=c.whole("n_inner", 4 * dim),
        max_len=c.whole("n_positions", 1024),
        activation=c.activation("activation_function", "gelu_new"),
        positions=Positions(kind="learned"),
        norms=Norms(eps=c.number("layer_norm_epsilon", 1e-5)),
        dropout=Dropout(
            embedding=c.number("embd_pdrop", 0.1),
            weights=c.number("attn_pdrop", 0.1),
            residual=c.number("resid_pdrop", 0.1),
        ),
        output=Output(tied=c.flag("tie_word_embeddings", True)),
        attention_scale=None if c.flag("scale_attn_weights", True) else 1.0,
    )


def _write(config: Config) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.vocab_size,
        "n_embd": config.dim,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": config.hidden_dim,
        "n_positions": config.max_len,
        "activation_function": FOREIGN_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.norms.eps,
        "embd_pdrop": config.dropout.embedding,
        "attn_pdrop": config.dropout.weights,
        "resid_pdrop": config.dropout.residual,
        "tie_word_embeddings": config.output.tied,
        "scale_attn_weights": config.attention_scale is None,
    }


GPT2 = Architecture(
    model_type="gpt2",
    prefix="transformer.",
    columns=NAMES,
    read=_read,
    write=_write,
    ignored=r".*\.attn\.(masked_)?bias",  # causal masks that old files carry
)
