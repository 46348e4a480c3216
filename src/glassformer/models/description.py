"""How large a model is and what a token costs, counted from the model, built without memory."""

from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from glassformer.layers import MixtureOfExperts
from glassformer.models.config import Config
from glassformer.models.parameters import count_active_parameters, count_parameters
from glassformer.models.presets import PRESETS, build

_BYTES = 2  # bfloat16


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """A model in numbers; bytes are those of bfloat16."""

    name: str
    family: str
    n_layers: int
    dim: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    max_len: int
    parameters: int  # what is shared counts once
    active_parameters: int  # those that one token uses: fewer in a mixture of experts
    flops_per_token: int  # 2 for each weight that a token is multiplied with, attention apart
    attention_flops_per_key: int  # what each key that a token attends to adds
    weight_bytes: int
    cache_bytes_per_token: int  # keys and values that a decoder keeps

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def describe(model: Config | str) -> Description:
    """The numbers of a config or a preset.

    >>> f"{describe('gpt-2').parameters:,}"
    '124,439,808'
    """
    built = build(model, device="meta")
    config = PRESETS[model] if isinstance(model, str) else model
    parameters = count_parameters(built)
    linear: int = sum(m.weight.numel() for m in built.modules() if isinstance(m, nn.Linear))
    linear += sum(_count_routed(m) for m in built.modules() if isinstance(m, MixtureOfExperts))
    scoring = config.family in ("decoder", "encoder_decoder") or (
        config.family == "encoder" and config.output.masked_tokens
    )
    output = config.vocab_size * config.dim if scoring else 0
    decoding = {"encoder": 0, "vision": 0, "decoder": config.n_layers}.get(
        config.family, config.decoder_layers
    )
    layers = config.n_layers + (2 * decoding if config.family == "encoder_decoder" else 0)
    cached_heads, k_dim, v_dim = config.cache_shape
    return Description(
        name=model if isinstance(model, str) else config.family,
        family=config.family,
        n_layers=config.n_layers,
        dim=config.dim,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        vocab_size=config.vocab_size,
        max_len=config.max_len,
        parameters=parameters,
        active_parameters=count_active_parameters(built),
        flops_per_token=2 * (linear + output),
        attention_flops_per_key=2 * layers * config.n_heads * (config.head_dim + config.value_dim),
        weight_bytes=_BYTES * parameters,
        cache_bytes_per_token=_BYTES * decoding * cached_heads * (k_dim + v_dim),
    )


def _count_routed(mixture: MixtureOfExperts) -> int:
    """The weights of a router, and those of as many experts as it chooses."""
    router = mixture.router
    experts = mixture.expert_up.weight[0].numel() + mixture.expert_down.weight[0].numel()
    return router.weight.numel() + router.n_active * experts
