"""Mixtral (Jiang et al. 2024) and Qwen3's mixtures: Llama's kin with experts.

Every layer of Mixtral is a mixture; Qwen3 says which layers are not.
"""

from typing import Any

from glassformer.errors import CheckpointError
from glassformer.layers.attention import Biases
from glassformer.models.checkpoints.architectures.architecture import Architecture, Foreign
from glassformer.models.checkpoints.architectures.llama import (
    ANGLES,
    NAMES,
    read_decoder,
    write_decoder,
    write_qwen_window,
)
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config
from glassformer.models.variants import Experts
from glassformer.settings import quote

_MLP = "decoder.blocks.{i}.feed_forward"
_MIXTRAL, _QWEN = "model.layers.{i}.block_sparse_moe", "model.layers.{i}.mlp"
_MIXTRAL_NAMES: Columns = (
    *(row for row in NAMES if not row[0].startswith(f"{_MLP}.")),
    (f"{_MLP}.router.weight", f"{_MIXTRAL}.gate.weight"),
    (f"{_MLP}.expert_up.weight", f"{_MIXTRAL}.experts.{{e}}.[w1|w3].weight"),
    (f"{_MLP}.expert_down.weight", f"{_MIXTRAL}.experts.{{e}}.w2.weight"),
)
EXPERT_NAMES: Columns = (
    (f"{_MLP}.router.weight", f"{_QWEN}.gate.weight"),
    (f"{_MLP}.expert_up.weight", f"{_QWEN}.experts.{{e}}.[gate|up]_proj.weight"),
    (f"{_MLP}.expert_down.weight", f"{_QWEN}.experts.{{e}}.down_proj.weight"),
)


def _read_mixtral(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    experts = Experts(
        n_experts=c.whole("num_local_experts", 8),
        n_active=c.whole("num_experts_per_tok", 2),
        hidden_dim=c.whole("intermediate_size"),
        balance=c.number("router_aux_loss_coef", 0.001),
    )
    return read_decoder(c, biases="none", n_kv_heads=8).replace(experts=experts)


def _write_mixtral(config: Config) -> dict[str, Any]:
    written = {**write_decoder(config, "MixtralForCausalLM"), "sliding_window": config.window}
    if config.experts is None:
        return written
    return {
        **written,
        "intermediate_size": config.experts.hidden_dim,
        "num_local_experts": config.experts.n_experts,
        "num_experts_per_tok": config.experts.n_active,
        "router_aux_loss_coef": config.experts.balance,
    }


def _read_qwen3(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    biases: Biases = "attention" if c.flag("attention_bias", False) else "none"
    experts = Experts(
        n_experts=c.whole("num_experts", c.get("num_local_experts", 128)),
        n_active=c.whole("num_experts_per_tok", 8),
        hidden_dim=c.whole("moe_intermediate_size", 768),
        normalization="chosen" if c.flag("norm_topk_prob", False) else "all",
        dense_layers=_read_dense_layers(c),
        balance=c.number("router_aux_loss_coef", 0.001),
    )
    return read_decoder(c, biases=biases, head_norm=True).replace(experts=experts)


def _read_dense_layers(c: Foreign) -> tuple[int, ...]:
    listed, step = c.get("mlp_only_layers", []), c.whole("decoder_sparse_step", 1)
    if not isinstance(listed, list) or not all(type(layer) is int for layer in listed):
        raise CheckpointError(
            f"mlp_only_layers in config.json must be a list of layers; it is {quote(listed)}."
        )
    n_layers = c.whole("num_hidden_layers")
    if n_layers > 10_000:  # the config says so in its own words
        return ()
    return tuple(i for i in range(n_layers) if i in listed or (i + 1) % step)


def _write_qwen3(config: Config) -> dict[str, Any]:
    written = {
        **write_decoder(config, "Qwen3MoeForCausalLM"),
        **write_qwen_window(config),
        "attention_bias": config.biases == "attention",
    }
    experts = config.experts
    if experts is None:
        return written
    return {
        **written,
        "num_experts": experts.n_experts,
        "num_experts_per_tok": experts.n_active,
        "moe_intermediate_size": experts.hidden_dim,
        "norm_topk_prob": experts.normalization == "chosen",
        "mlp_only_layers": list(experts.dense_layers),
        "decoder_sparse_step": 1,
        "router_aux_loss_coef": experts.balance,
    }


MIXTRAL = Architecture(
    model_type="mixtral",
    prefix="model.",
    columns=_MIXTRAL_NAMES,
    read=_read_mixtral,
    write=_write_mixtral,
    ignored=ANGLES,
)
QWEN3_MOE = Architecture(
    model_type="qwen3_moe",
    prefix="model.",
    columns=(*NAMES, *EXPERT_NAMES),
    read=_read_qwen3,
    write=_write_qwen3,
    ignored=ANGLES,
)
