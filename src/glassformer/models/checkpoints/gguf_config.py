"""The header of a GGUF file as a config, and a config as such a header.

llama.embedding_length = 256        dim
llama.attention.head_count = 4      n_heads
…                                   one table, followed in both directions
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import CheckpointError, ConfigError
from glassformer.functional.positions.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    Scaling,
    YaRNScaling,
)
from glassformer.models.config import Config, Norms, Output, Positions
from glassformer.settings import quote

ARCHITECTURES = ("llama", "qwen2", "qwen3")
DIVISORS = "rope_freqs.weight"  # of the angles, where bands of them are scaled
SIZES = {
    "context_length": "max_len",
    "embedding_length": "dim",
    "block_count": "n_layers",
    "feed_forward_length": "hidden_dim",
    "attention.head_count": "n_heads",
    "attention.head_count_kv": "n_kv_heads",
    "attention.key_length": "head_dim",
}
_HEAD_WIDTHS = ("attention.value_length", "rope.dimension_count")  # equal to key_length here
_EPSILON, _BASE = "attention.layer_norm_rms_epsilon", "rope.freq_base"
_SCALING, _FACTOR = "rope.scaling.type", "rope.scaling.factor"
_ORIGINAL = "rope.scaling.original_context_length"


def read_config(
    fields: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    divisors: Tensor | None,
    where: str,
) -> Config:
    """The config of a header; the names and `shapes` of the tensors tell the rest."""
    kind = fields.get("general.architecture")
    if kind not in ARCHITECTURES:
        raise CheckpointError(
            f"A GGUF file must hold a model of {', '.join(ARCHITECTURES)}; {where} holds "
            f"{quote(kind)}."
        )
    header = _Header(fields, kind, where)
    table = shapes.get("token_embd.weight")
    if table is None or len(table) != 2:
        raise CheckpointError(f"{where} must have a matrix token_embd.weight; it has none.")
    sizes = header.sizes()
    head_dim = sizes["head_dim"]
    if header.whole("rope.dimension_count", head_dim) != head_dim:
        raise CheckpointError(
            f"All {head_dim} numbers of a head must be rotated; {where} rotates "
            f"{header.whole('rope.dimension_count')}."
        )
    try:
        return Config(
            family="decoder",
            vocab_size=table[0],
            **sizes,
            activation="silu",
            gated=True,
            biases="qkv" if "blk.0.attn_q.bias" in shapes else "none",
            positions=_read_positions(header, divisors, head_dim),
            norms=Norms(
                kind="rms",
                eps=header.number(_EPSILON),
                heads="blk.0.attn_q_norm.weight" in shapes,
            ),
            output=Output(tied="output.weight" not in shapes),
        )
    except ConfigError as error:
        raise CheckpointError(f"The header of {where} describes no model: {error}") from None


def write_config(config: Config) -> tuple[dict[str, Any], Tensor | None]:
    """The header of a config and the divisors of its angles; `read_config` reads them back."""
    kind = "qwen3" if config.norms.heads else "qwen2" if config.biases == "qkv" else "llama"
    fields: dict[str, Any] = {name: getattr(config, ours) for name, ours in SIZES.items()}
    fields |= dict.fromkeys(_HEAD_WIDTHS, config.head_dim)
    fields |= {"vocab_size": config.vocab_size, _EPSILON: float(config.norms.eps)}
    fields[_BASE] = float(config.positions.base)
    scaling, divisors = config.positions.scaling, None
    if isinstance(scaling, LinearScaling | YaRNScaling):
        fields[_SCALING] = "linear" if isinstance(scaling, LinearScaling) else "yarn"
        fields[_FACTOR] = float(scaling.factor)
    if isinstance(scaling, YaRNScaling):
        fields[_ORIGINAL] = scaling.original_len
    if isinstance(scaling, BandedScaling):
        divisors = _divisors(scaling, config.positions.base, config.head_dim).float()
    header = {f"{kind}.{name}": value for name, value in fields.items()}
    return {"general.architecture": kind, **header}, divisors


def _read_positions(header: "_Header", divisors: Tensor | None, head_dim: int) -> Positions:
    base = header.number(_BASE, 10000.0)
    kind = header.get(_SCALING, "none")
    scaling: Scaling | None = None
    if kind == "linear":
        scaling = LinearScaling(header.number(_FACTOR))
    elif kind == "yarn":
        scaling = YaRNScaling(header.number(_FACTOR), original_len=header.whole(_ORIGINAL))
    elif kind != "none":
        raise CheckpointError(
            f"Rotary positions must be scaled as none, linear or yarn; {header.where} says "
            f"{quote(kind)}."
        )
    if divisors is not None:
        scaling = _read_bands(divisors, base, head_dim, header.where)
    return Positions(kind="rotary", base=base, scaling=scaling)


def _read_bands(divisors: Tensor, base: float, head_dim: int, where: str) -> Scaling:
    """Llama 3's scaling, of which the file keeps the result: one divisor per pair."""
    if divisors.shape != (head_dim // 2,) or not bool((divisors > 0.999).all()):
        raise CheckpointError(
            f"{DIVISORS} in {where} must hold {head_dim // 2} divisors of at least 1; it has shape "
            f"{tuple(divisors.shape)}."
        )
    factor = shortest_decimal(float(divisors.max()))
    scaling = BandedScaling(factor, low_freq_factor=1.0, high_freq_factor=4.0, original_len=8192)
    expected = _divisors(scaling, base, head_dim)
    if not torch.allclose(divisors.double(), expected, rtol=1e-3):
        raise CheckpointError(
            f"{DIVISORS} in {where} must be the scaling of Llama 3 (bands 1 and 4, trained on "
            "8,192 tokens); it is another."
        )
    return scaling


def _divisors(scaling: BandedScaling, base: float, head_dim: int) -> Tensor:
    plain = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    return plain / scaling.scale(plain, base, None)


def shortest_decimal(value: float) -> float:
    """The number with the fewest digits among those that a float32 stands for.

    >>> shortest_decimal(9.999999747378752e-06)
    1e-05
    """
    return float(str(np.float32(value)))


@dataclass(frozen=True)
class _Header:
    """The fields about the model, each of the type that it must have."""

    fields: Mapping[str, Any]
    kind: str
    where: str

    def get(self, name: str, default: Any = None) -> Any:
        return self.fields.get(f"{self.kind}.{name}", default)

    def sizes(self) -> dict[str, Any]:
        found: dict[str, int] = {}
        for name, ours in SIZES.items():
            defaults = {"n_kv_heads": found.get("n_heads")}
            if ours == "head_dim":
                defaults["head_dim"] = found["dim"] // found["n_heads"]
            found[ours] = self.whole(name, defaults.get(ours))
        return found

    def number(self, name: str, default: float | int | None = None, *, kind: type = float) -> Any:
        """A number of the header; one without a default must be there."""
        value = self.get(name, default)
        fits = isinstance(value, int | kind) and not isinstance(value, bool)
        if not fits or not math.isfinite(value):
            what = "a whole number" if kind is int else "a number"
            raise CheckpointError(
                f"{self.where} must have {self.kind}.{name}, {what}, in its header; it has "
                f"{'nothing' if value is None else quote(value)}."
            )
        return int(value) if kind is int else shortest_decimal(value)

    def whole(self, name: str, default: int | None = None) -> int:
        value = self.number(name, default, kind=int)
        if not 1 <= value < 2**31:
            raise CheckpointError(
                f"{self.kind}.{name} in {self.where} must be at least 1 and below 2³¹; it is "
                f"{value}."
            )
        return value
