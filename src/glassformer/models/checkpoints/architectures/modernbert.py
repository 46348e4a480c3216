"""ModernBERT (Warner et al. 2024): an encoder with RoPE, a gated network and local layers.

Its `local_attention` of 128 reaches 64 tokens to either side, which is a window of 129 here.
"""

from typing import Any

from glassformer.errors import CheckpointError
from glassformer.models.checkpoints.architectures.architecture import (
    FOREIGN_ACTIVATIONS,
    Architecture,
    Foreign,
)
from glassformer.models.checkpoints.architectures.llama import (
    LAYER_TYPES,
    read_biases,
    read_global_layers,
    read_rotary,
    write_layer_types,
    write_rotary,
)
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions
from glassformer.settings import quote

NAMES: Columns = (
    ("embedding.weight", "model.embeddings.tok_embeddings.weight = decoder.weight"),
    ("encoder.embedding_norm.{x}", "model.embeddings.norm.{x}"),
    ("encoder.blocks.{i}.attention_norm.{x}", "model.layers.{i}.attn_norm.{x}"),
    ("encoder.blocks.{i}.attention.qkv.{x}", "model.layers.{i}.attn.Wqkv.{x}"),
    ("encoder.blocks.{i}.attention.out.{x}", "model.layers.{i}.attn.Wo.{x}"),
    ("encoder.blocks.{i}.feed_forward_norm.{x}", "model.layers.{i}.mlp_norm.{x}"),
    ("encoder.blocks.{i}.feed_forward.up.{x}", "model.layers.{i}.mlp.Wi.{x}"),
    ("encoder.blocks.{i}.feed_forward.down.{x}", "model.layers.{i}.mlp.Wo.{x}"),
    ("encoder.final_norm.{x}", "model.final_norm.{x}"),
    ("head.dense.{x}", "head.dense.{x}"),
    ("head.norm.{x}", "head.norm.{x}"),
    ("head.bias", "decoder.bias"),
)


def _read(c: Foreign, names: set[str]) -> Config:
    if any(name.startswith("classifier.") for name in names):
        raise CheckpointError(
            "A modernbert model with a classifier is not known to glassformer, only the bare model "
            "and ModernBertForMaskedLM. Save the bare model (model.model) and load that."
        )
    c.require("tie_word_embeddings", True)
    has_head = any(name.startswith("head.") for name in names)
    norm_bias, head_bias = c.flag("norm_bias", False), c.flag("classifier_bias", False)
    if has_head:
        _check_head(c, norm_bias, head_bias)
    max_len = c.whole("max_position_embeddings", 8192)
    return Config(
        family="encoder",
        vocab_size=c.whole("vocab_size"),
        dim=c.whole("hidden_size"),
        n_layers=c.whole("num_hidden_layers"),
        n_heads=c.whole("num_attention_heads"),
        hidden_dim=c.whole("intermediate_size"),
        max_len=max_len,
        activation=c.activation("hidden_activation", "gelu"),
        gated=True,
        biases=read_biases(c),
        norms=Norms(eps=c.number("norm_eps", 1e-5), bias=norm_bias, embedding=True, first=False),
        dropout=Dropout(
            embedding=c.number("embedding_dropout", 0.0),
            weights=c.number("attention_dropout", 0.0),
            hidden=c.number("mlp_dropout", 0.0),
        ),
        output=Output(masked_tokens=has_head, head_bias=head_bias),
        **_read_layers(c, max_len),
    )


def _check_head(c: Foreign, norm_bias: bool, head_bias: bool) -> None:
    c.require("decoder_bias", True)
    activations = [
        c.activation(name, "gelu") for name in ("hidden_activation", "classifier_activation")
    ]
    if activations[0] != activations[1]:
        raise CheckpointError(
            "hidden_activation and classifier_activation must be equal for glassformer; "
            f"config.json has {activations[0]} and {activations[1]}."
        )
    if norm_bias != head_bias:
        raise CheckpointError(
            "norm_bias and classifier_bias must be equal for glassformer; config.json has "
            f"{norm_bias} and {head_bias}."
        )


def _read_layers(c: Foreign, max_len: int) -> dict[str, Any]:
    """The window, the layers that have none, and the rotary positions of both kinds."""
    n_layers = c.whole("num_hidden_layers")
    usual = range(0, n_layers, c.whole("global_attn_every_n_layers", 3))
    full = read_global_layers(c, usual)
    wide, near = (
        _read_rotary(c, kind, base, max_len)
        for kind, base in zip(LAYER_TYPES, _read_bases(c), strict=True)
    )
    if len(full) == n_layers:
        return {"positions": wide}
    window = 2 * (c.whole("local_attention", 128, least=0) // 2) + 1
    if not full:
        return {"positions": near, "window": window}
    if wide.scaling != near.scaling:
        raise CheckpointError(
            "The scaling of rotary positions must be the same in all layers for glassformer; "
            f"config.json has {wide.scaling} in full_attention and {near.scaling} in "
            "sliding_attention."
        )
    local_base = None if near.base == wide.base else near.base
    positions = Positions(
        kind="rotary", base=wide.base, local_base=local_base, scaling=wide.scaling
    )
    return {"positions": positions, "window": window, "global_layers": full}


def _read_bases(c: Foreign) -> tuple[float, float]:
    """The bases of full and sliding attention, under their older names; null is the first."""
    full = c.number("global_rope_theta", 160_000.0)
    has_own = c.values.get("local_rope_theta", ...) is not None
    return full, c.number("local_rope_theta", 10_000.0) if has_own else full


def _read_rotary(c: Foreign, kind: str, base: float, max_len: int) -> Positions:
    given = c.table("rope_parameters")
    if not given.keys() <= {*LAYER_TYPES}:
        raise CheckpointError(
            f"rope_parameters in config.json of a modernbert model must be a table for each of "
            f"{', '.join(LAYER_TYPES)}; it is {quote(given)}."
        )
    rope = {
        "rope_theta": base,
        **Foreign({"model_type": c.kind, **given}).table(kind),
        **c.table("rope_scaling"),
    }
    return read_rotary(Foreign({"model_type": c.kind, "rope_parameters": rope}), max_len)


def _write(config: Config) -> dict[str, Any]:
    wide = write_rotary(config.positions)
    local_base = config.positions.local_base
    near = wide if local_base is None else {**wide, "rope_theta": local_base}
    head = "ModernBertForMaskedLM" if config.output.masked_tokens else "ModernBertModel"
    return {
        "architectures": [head],
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.hidden_dim,
        "max_position_embeddings": config.max_len,
        "hidden_activation": FOREIGN_ACTIVATIONS[config.activation],
        "classifier_activation": FOREIGN_ACTIVATIONS[config.activation],
        "norm_eps": config.norms.eps,
        "norm_bias": config.norms.bias,
        "attention_bias": config.biases in ("attention", "all"),
        "mlp_bias": config.biases == "all",
        "classifier_bias": config.output.head_bias,
        "embedding_dropout": config.dropout.embedding,
        "attention_dropout": config.dropout.weights,
        "mlp_dropout": config.dropout.hidden,
        "local_attention": 128 if config.window is None else config.window - 1,
        "layer_types": write_layer_types(config),
        "rope_parameters": dict(zip(LAYER_TYPES, (wide, near), strict=True)),
        # Otherwise those of ModernBERT's own vocabulary.
        **dict.fromkeys(f"{each}_token_id" for each in ("bos", "eos", "pad", "cls", "sep")),
    }


MODERNBERT = Architecture(
    model_type="modernbert",
    prefix="model.",
    columns=NAMES,
    read=_read,
    write=_write,
    ignored=r".*\.inv_freq|.*_inv_freq",
)
