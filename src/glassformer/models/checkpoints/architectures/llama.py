"""Llama (Touvron et al. 2023), and Mistral, Qwen2 and Qwen3, which share its names.

Mistral looks back through a window, Qwen2 adds biases to queries, keys and values, and Qwen3
norms queries and keys.
"""

from collections.abc import Iterable
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.functional.positions.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    NTKScaling,
    Scaling,
    YaRNScaling,
)
from glassformer.layers.attention import Biases
from glassformer.models.checkpoints.architectures.architecture import (
    FOREIGN_ACTIVATIONS,
    Architecture,
    Foreign,
)
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions
from glassformer.settings import quote

ANGLES = r".*\.rotary_emb\.inv_freq"  # computed here, stored by old files
LAYER_TYPES = ("full_attention", "sliding_attention")
ROPE_TYPES = ("default", "linear", "dynamic", "yarn", "llama3")
NAMES: Columns = (
    ("embedding.weight", "model.embed_tokens.weight"),
    ("decoder.blocks.{i}.attention_norm.weight", "model.layers.{i}.input_layernorm.weight"),
    ("decoder.blocks.{i}.attention.qkv.{x}", "model.layers.{i}.self_attn.[q|k|v]_proj.{x}"),
    ("decoder.blocks.{i}.attention.q_norm.weight", "model.layers.{i}.self_attn.q_norm.weight"),
    ("decoder.blocks.{i}.attention.k_norm.weight", "model.layers.{i}.self_attn.k_norm.weight"),
    ("decoder.blocks.{i}.attention.out.{x}", "model.layers.{i}.self_attn.o_proj.{x}"),
    (
        "decoder.blocks.{i}.feed_forward_norm.weight",
        "model.layers.{i}.post_attention_layernorm.weight",
    ),
    ("decoder.blocks.{i}.feed_forward.up.{x}", "model.layers.{i}.mlp.[gate|up]_proj.{x}"),
    ("decoder.blocks.{i}.feed_forward.down.{x}", "model.layers.{i}.mlp.down_proj.{x}"),
    ("decoder.final_norm.weight", "model.norm.weight"),
    ("head.weight", "lm_head.weight"),
)


def read_decoder(
    c: Foreign, *, biases: Biases, n_kv_heads: int | None = None, head_norm: bool = False
) -> Config:
    """A config of this kin: what is common to all of them."""
    n_heads, dim = c.whole("num_attention_heads"), c.whole("hidden_size")
    max_len = c.whole("max_position_embeddings", 2048)
    return Config(
        family="decoder",
        vocab_size=c.whole("vocab_size"),
        dim=dim,
        n_layers=c.whole("num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=c.whole("num_key_value_heads", n_kv_heads or n_heads),
        head_dim=c.whole("head_dim", dim // n_heads),
        hidden_dim=c.whole("intermediate_size"),
        max_len=max_len,
        activation=c.activation("hidden_act", "silu"),
        gated=True,
        biases=biases,
        positions=read_rotary(c, max_len),
        norms=Norms(kind="rms", eps=c.number("rms_norm_eps", 1e-6), heads=head_norm),
        dropout=Dropout(weights=c.number("attention_dropout", 0.0)),
        output=Output(tied=c.flag("tie_word_embeddings", False)),
        **_read_window(c),
    )


def _read_window(c: Foreign) -> dict[str, Any]:
    """The window, and the layers that have none."""
    window = None if c.get("sliding_window") is None else c.whole("sliding_window")
    if window is None or c.kind in ("mistral", "mixtral"):
        return {"window": window}
    if not c.flag("use_sliding_window", False):
        return {}
    if c.kind == "qwen3_moe":
        return {"window": window}
    n_layers, first = c.whole("num_hidden_layers"), c.whole("max_window_layers", 28, least=0)
    full = read_global_layers(c, range(min(first, n_layers)))
    return {} if len(full) == n_layers else {"window": window, "global_layers": full}


def read_global_layers(c: Foreign, usual: Iterable[int]) -> tuple[int, ...]:
    """The layers without a window, by layer_types; `usual` where these are left out."""
    kinds, n_layers = c.get("layer_types"), c.whole("num_hidden_layers")
    if kinds is None:
        return tuple(usual)
    if not isinstance(kinds, list) or len(kinds) != n_layers or not _is_known(kinds):
        raise CheckpointError(
            f"layer_types in config.json must name each of the {n_layers} layers as one of "
            f"{', '.join(LAYER_TYPES)}; it is {quote(kinds)}."
        )
    return tuple(i for i, kind in enumerate(kinds) if kind == "full_attention")


def _is_known(kinds: list[Any]) -> bool:
    return all(kind in LAYER_TYPES for kind in kinds)


def write_layer_types(config: Config) -> list[str]:
    """What kind of attention each layer has."""
    is_full = [config.window is None or i in config.global_layers for i in range(config.n_layers)]
    return [LAYER_TYPES[0 if full else 1] for full in is_full]


def read_rotary(c: Foreign, max_len: int) -> Positions:
    """Rotary positions and their scaling, under the names of any version."""
    rope = Foreign({"model_type": c.kind, **c.table("rope_scaling"), **c.table("rope_parameters")})
    base = rope.number("rope_theta", c.number("rope_theta", 10000.0))
    rope.require("partial_rotary_factor", 1.0)
    older = rope.word("type", "default", ROPE_TYPES)
    kind = rope.word("rope_type", older, ROPE_TYPES)
    return Positions(kind="rotary", base=base, scaling=_read_scaling(rope, kind, max_len))


def _read_scaling(rope: Foreign, kind: str, max_len: int) -> Scaling | None:
    if kind == "default":
        return None
    factor = rope.number("factor", 1.0)
    original = rope.whole("original_max_position_embeddings", max_len)
    if kind == "linear":
        return LinearScaling(factor)
    if kind == "dynamic":
        return NTKScaling(factor, original_len=original)
    if kind == "yarn":
        return YaRNScaling(
            factor,
            original_len=original,
            beta_fast=rope.number("beta_fast", 32.0),
            beta_slow=rope.number("beta_slow", 1.0),
            attention_factor=rope.optional_number("attention_factor"),
            mscale=rope.optional_number("mscale"),
            mscale_all_dim=rope.optional_number("mscale_all_dim"),
            truncate=rope.flag("truncate", True),
        )
    return BandedScaling(
        factor,
        low_freq_factor=rope.number("low_freq_factor", 1.0),
        high_freq_factor=rope.number("high_freq_factor", 4.0),
        original_len=original,
    )


def write_rotary(positions: Positions) -> dict[str, Any]:
    """Rotary positions and their scaling, as rope_parameters."""
    scaling = positions.scaling
    written: dict[str, Any] = {"rope_type": "default", "rope_theta": positions.base}
    if scaling is None:
        return written
    written["factor"] = scaling.factor
    if isinstance(scaling, LinearScaling):
        return {**written, "rope_type": "linear"}
    written["original_max_position_embeddings"] = scaling.original_len
    if isinstance(scaling, NTKScaling):
        return {**written, "rope_type": "dynamic"}
    if isinstance(scaling, BandedScaling):
        bands = {n: getattr(scaling, n) for n in ("low_freq_factor", "high_freq_factor")}
        return {**written, "rope_type": "llama3", **bands}
    optional = ("attention_factor", "mscale", "mscale_all_dim")
    given = {n: getattr(scaling, n) for n in optional if getattr(scaling, n) is not None}
    ends = {n: getattr(scaling, n) for n in ("beta_fast", "beta_slow", "truncate")}
    return {**written, "rope_type": "yarn", **ends, **given}


def write_decoder(config: Config, architecture: str) -> dict[str, Any]:
    """The fields that are common to all of this kin."""
    return {
        "architectures": [architecture],
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.hidden_dim,
        "max_position_embeddings": config.max_len,
        "hidden_act": FOREIGN_ACTIVATIONS[config.activation],
        "rms_norm_eps": config.norms.eps,
        "attention_dropout": config.dropout.weights,
        "tie_word_embeddings": config.output.tied,
        "rope_parameters": write_rotary(config.positions),
        "rope_theta": config.positions.base,
    }


def read_biases(c: Foreign) -> Biases:
    """Which linear layers have biases: none, those of attention, or all."""
    biases: Biases = "attention" if c.flag("attention_bias", False) else "none"
    if c.flag("mlp_bias", False):
        if biases == "none":
            raise CheckpointError(
                f"A {c.kind} model with mlp_bias needs attention_bias too for glassformer; "
                "config.json has the first alone."
            )
        biases = "all"
    return biases


def _read_llama(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    return read_decoder(c, biases=read_biases(c))


def _write_llama(config: Config) -> dict[str, Any]:
    return {
        **write_decoder(config, "LlamaForCausalLM"),
        "attention_bias": config.biases in ("attention", "all"),
        "mlp_bias": config.biases == "all",
    }


def _read_mistral(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    return read_decoder(c, biases="none", n_kv_heads=8)


def _write_mistral(config: Config) -> dict[str, Any]:
    return {**write_decoder(config, "MistralForCausalLM"), "sliding_window": config.window}


def _read_qwen2(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    return read_decoder(c, biases="qkv")


def _write_qwen2(config: Config) -> dict[str, Any]:
    return {**write_decoder(config, "Qwen2ForCausalLM"), **write_qwen_window(config)}


def _read_qwen3(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    biases: Biases = "attention" if c.flag("attention_bias", False) else "none"
    return read_decoder(c, biases=biases, head_norm=True)


def _write_qwen3(config: Config) -> dict[str, Any]:
    return {
        **write_decoder(config, "Qwen3ForCausalLM"),
        **write_qwen_window(config),
        "attention_bias": config.biases == "attention",
    }


def write_qwen_window(config: Config) -> dict[str, Any]:
    """A window, as Qwen's configs describe it."""
    if config.window is None:
        return {"use_sliding_window": False}
    written = {"use_sliding_window": True, "sliding_window": config.window}
    return {**written, "max_window_layers": 0, "layer_types": write_layer_types(config)}


def _architecture(model_type: str, read: Any, write: Any) -> Architecture:
    return Architecture(
        model_type=model_type,
        prefix="model.",
        columns=NAMES,
        read=read,
        write=write,
        ignored=ANGLES,
    )


LLAMA = _architecture("llama", _read_llama, _write_llama)
MISTRAL = _architecture("mistral", _read_mistral, _write_mistral)
QWEN2 = _architecture("qwen2", _read_qwen2, _write_qwen2)
QWEN3 = _architecture("qwen3", _read_qwen3, _write_qwen3)
