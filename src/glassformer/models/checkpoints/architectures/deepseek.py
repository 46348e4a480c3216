"""DeepSeek-V2 and V3 (DeepSeek-AI 2024): latent attention, and experts behind a few dense layers.

V2 weighs experts by a softmax; V3 by a sigmoid, with a bias for their selection.
"""

import math
from dataclasses import replace
from typing import Any

from glassformer.functional.positions.rotary_scalings import YaRNScaling
from glassformer.models.checkpoints.architectures.architecture import Architecture, Foreign
from glassformer.models.checkpoints.architectures.llama import (
    ANGLES,
    NAMES,
    read_rotary,
    write_decoder,
)
from glassformer.models.checkpoints.architectures.mixtral import EXPERT_NAMES
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions
from glassformer.models.variants import Experts, Latent

_OURS, _THEIRS = "decoder.blocks.{i}.", "model.layers.{i}."
_NAMES: Columns = (
    *(row for row in NAMES if not row[0].startswith(f"{_OURS}attention.")),
    (f"{_OURS}attention.q.weight", f"{_THEIRS}self_attn.q_proj.weight"),
    (f"{_OURS}attention.q_down.{{x}}", f"{_THEIRS}self_attn.q_a_proj.{{x}}"),
    (f"{_OURS}attention.q_norm.weight", f"{_THEIRS}self_attn.q_a_layernorm.weight"),
    (f"{_OURS}attention.q_up.weight", f"{_THEIRS}self_attn.q_b_proj.weight"),
    (f"{_OURS}attention.kv_down.{{x}}", f"{_THEIRS}self_attn.kv_a_proj_with_mqa.{{x}}"),
    (f"{_OURS}attention.kv_norm.weight", f"{_THEIRS}self_attn.kv_a_layernorm.weight"),
    (f"{_OURS}attention.kv_up.weight", f"{_THEIRS}self_attn.kv_b_proj.weight"),
    (f"{_OURS}attention.out.{{x}}", f"{_THEIRS}self_attn.o_proj.{{x}}"),
    *EXPERT_NAMES,
    (f"{_OURS}feed_forward.router.selection_bias", f"{_THEIRS}mlp.gate.e_score_correction_bias"),
    (
        f"{_OURS}feed_forward.shared.up.weight",
        f"{_THEIRS}mlp.shared_experts.[gate|up]_proj.weight",
    ),
    (f"{_OURS}feed_forward.shared.down.weight", f"{_THEIRS}mlp.shared_experts.down_proj.weight"),
)


def _read(c: Foreign, *, layout: Any, experts: Experts) -> Config:
    n_heads, max_len = c.whole("num_attention_heads"), c.whole("max_position_embeddings")
    rotary_dim = c.whole("qk_rope_head_dim")
    head_dim = c.whole("qk_nope_head_dim") + rotary_dim
    c.require("num_key_value_heads", n_heads)
    positions = replace(read_rotary(c, max_len), layout=layout)
    return Config(
        family="decoder",
        vocab_size=c.whole("vocab_size"),
        dim=c.whole("hidden_size"),
        n_layers=c.whole("num_hidden_layers"),
        n_heads=n_heads,
        head_dim=head_dim,
        hidden_dim=c.whole("intermediate_size"),
        max_len=max_len,
        activation=c.activation("hidden_act", "silu"),
        gated=True,
        biases="attention" if c.flag("attention_bias", False) else "none",
        positions=positions,
        norms=Norms(kind="rms", eps=c.number("rms_norm_eps", 1e-6)),
        dropout=Dropout(weights=c.number("attention_dropout", 0.0)),
        output=Output(tied=c.flag("tie_word_embeddings", False)),
        attention_scale=_scale(head_dim, positions),
        experts=experts,
        latent=Latent(
            kv_dim=c.whole("kv_lora_rank"),
            q_dim=None if c.get("q_lora_rank") is None else c.whole("q_lora_rank"),
            rotary_dim=rotary_dim,
            value_dim=c.whole("v_head_dim"),
        ),
    )


def _scale(head_dim: int, positions: Positions) -> float | None:
    """YaRN's temperature, which here acts on the scores, not on the rotated part alone."""
    scaling = positions.scaling
    if not isinstance(scaling, YaRNScaling) or not scaling.mscale_all_dim or scaling.factor <= 1:
        return None
    return head_dim**-0.5 * (0.1 * scaling.mscale_all_dim * math.log(scaling.factor) + 1) ** 2


def _read_experts(c: Foreign, **options: Any) -> Experts:
    n_layers = c.whole("num_hidden_layers")
    n_dense = c.whole("first_k_dense_replace", 0, least=0)
    return Experts(
        n_experts=c.whole("n_routed_experts"),
        n_active=c.whole("num_experts_per_tok"),
        hidden_dim=c.whole("moe_intermediate_size"),
        n_shared=c.whole("n_shared_experts"),
        scale=c.number("routed_scaling_factor", 1.0),
        dense_layers=tuple(range(min(n_dense, n_layers, 10_000))),
        **options,
    )


def _write(config: Config, architecture: str) -> dict[str, Any]:
    written, experts, latent = write_decoder(config, architecture), config.experts, config.latent
    written |= {"attention_bias": config.biases == "attention"}
    if experts is None or latent is None:
        return written
    del written["head_dim"]
    return {
        **written,
        "kv_lora_rank": latent.kv_dim,
        "q_lora_rank": latent.q_dim,
        "qk_rope_head_dim": latent.rotary_dim,
        "qk_nope_head_dim": config.head_dim - latent.rotary_dim,
        "v_head_dim": latent.value_dim,
        "n_routed_experts": experts.n_experts,
        "num_experts_per_tok": experts.n_active,
        "moe_intermediate_size": experts.hidden_dim,
        "n_shared_experts": experts.n_shared,
        "routed_scaling_factor": experts.scale,
        "first_k_dense_replace": len(experts.dense_layers),
        "n_group": experts.n_groups,
        "topk_group": experts.n_active_groups,
    }


def _read_v2(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    c.require("mlp_bias", False)
    c.require("norm_topk_prob", False)
    method = c.word("topk_method", "greedy", ("greedy", "group_limited_greedy"))
    is_grouped = method != "greedy"
    experts = _read_experts(
        c,
        normalization="all",
        n_groups=c.whole("n_group", 1) if is_grouped else 1,
        n_active_groups=c.whole("topk_group", 1) if is_grouped else 1,
    )
    return _read(c, layout="interleaved", experts=experts)


def _write_v2(config: Config) -> dict[str, Any]:
    is_grouped = config.experts is not None and config.experts.n_groups > 1
    return {
        **_write(config, "DeepseekV2ForCausalLM"),
        "topk_method": "group_limited_greedy" if is_grouped else "greedy",
        "norm_topk_prob": False,
    }


def _read_v3(c: Foreign, names: set[str]) -> Config:  # noqa: ARG001
    experts = _read_experts(
        c,
        gate="sigmoid",
        normalization="chosen" if c.flag("norm_topk_prob", True) else "all",
        n_groups=c.whole("n_group", 8),
        n_active_groups=c.whole("topk_group", 4),
        selection_bias=True,
    )
    layout = "interleaved" if c.flag("rope_interleave", True) else "half"
    return _read(c, layout=layout, experts=experts)


def _write_v3(config: Config) -> dict[str, Any]:
    experts = config.experts
    return {
        **_write(config, "DeepseekV3ForCausalLM"),
        "norm_topk_prob": experts is None or experts.normalization == "chosen",
        "rope_interleave": config.positions.layout == "interleaved",
        "num_nextn_predict_layers": 0,
    }


DEEPSEEK_V2 = Architecture(
    model_type="deepseek_v2",
    prefix="model.",
    columns=_NAMES,
    read=_read_v2,
    write=_write_v2,
    ignored=ANGLES,
)
DEEPSEEK_V3 = Architecture(
    model_type="deepseek_v3",
    prefix="model.",
    columns=_NAMES,
    read=_read_v3,
    write=_write_v3,
    ignored=ANGLES,
)
