"""RoPE scalings: lower frequencies extend the context beyond the trained length."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Real
from torch import Tensor

from glassformer.errors import ConfigError

Number = float | int
Length = int | Real[Tensor, ""] | None
Pairs = Float[Tensor, " pairs"]


@dataclass(frozen=True, slots=True)
class LinearScaling:
    """Position interpolation: every frequency / factor (Chen et al. 2023a, arXiv:2306.15595).

    >>> from glassformer.functional.positions.rotary import Rotary
    >>> Rotary(4, scaling=LinearScaling(4)).frequencies()
    tensor([0.2500, 0.0025], dtype=torch.float64)
    """

    factor: Number
    magnitude: ClassVar[Number] = 1.0

    def __post_init__(self) -> None:
        _check_reach(self.factor)

    def scale(self, frequencies: Pairs, _base: Number, _length: Length, /) -> Pairs:
        return frequencies / self.factor


@dataclass(frozen=True, slots=True)
class NTKScaling:
    """NTK-aware scaling: a larger base (bloc97 2023; Peng et al. 2023, §3.1).

    ::

        base' = base · stretch^(D / (D − 2)),  so  frequency' = frequency / stretch^(i / (P − 1))

    The fastest pair is unchanged, the slowest is divided by `stretch`: that is `factor`, or with
    `original_len` (the dynamic form) it grows with the length, from 1::

        stretch = factor · max(length, original_len) / original_len − (factor − 1)

    >>> from glassformer.functional.positions.rotary import Rotary
    >>> Rotary(4, scaling=NTKScaling(4)).frequencies()
    tensor([1.0000, 0.0025], dtype=torch.float64)
    >>> Rotary(4, scaling=NTKScaling(4, original_len=1000)).frequencies(length=2000)
    tensor([1.0000, 0.0020], dtype=torch.float64)
    """

    factor: Number
    _: KW_ONLY
    original_len: int | None = None
    magnitude: ClassVar[Number] = 1.0

    def __post_init__(self) -> None:
        _check_reach(self.factor, self.original_len)

    def scale(self, frequencies: Pairs, _base: Number, length: Length, /) -> Pairs:
        where = {"dtype": frequencies.dtype, "device": frequencies.device}
        depth = torch.linspace(0, 1, len(frequencies), **where)
        if self.original_len is None:
            return frequencies / self.factor**depth
        reached = torch.as_tensor(0 if length is None else length, **where) / self.original_len
        return frequencies / (self.factor * reached.clamp(min=1) - (self.factor - 1)) ** depth


@dataclass(frozen=True, slots=True)
class YaRNScaling:
    """YaRN: fast pairs stay unchanged, slow pairs slow down (Peng et al. 2023, arXiv:2309.00071).

    ::

        kept 1 ──────╲                     turns of a pair within original_len:
                      ╲                    beta_fast or more: keep the frequency
             0         ╲───────            beta_slow or fewer: divide it by factor
               fast pairs → slow pairs     between: linear; truncate rounds its ends to pairs

    The paper also sharpens the scores by a factor on cos and sin (§3.4): `attention_factor`, or
    0.1 · ln(factor) + 1, or with `mscale` and `mscale_all_dim` the quotient
    (0.1 · mscale · ln(factor) + 1) / (0.1 · mscale_all_dim · ln(factor) + 1).

    >>> from glassformer.functional.positions.rotary import Rotary
    >>> Rotary(8, scaling=YaRNScaling(4, original_len=2048)).frequencies()
    tensor([1.0000e+00, 1.0000e-01, 6.2500e-03, 2.5000e-04], dtype=torch.float64)
    >>> round(YaRNScaling(4, original_len=2048).magnitude, 4)
    1.1386
    """

    factor: Number
    _: KW_ONLY
    original_len: int
    beta_fast: Number = 32
    beta_slow: Number = 1
    attention_factor: Number | None = None
    mscale: Number | None = None
    mscale_all_dim: Number | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        _check_reach(self.factor, self.original_len)
        if not 0 < self.beta_slow < self.beta_fast:
            raise ConfigError(
                "beta_fast must be greater than beta_slow, and that greater than 0; "
                f"got {self.beta_fast} and {self.beta_slow}."
            )

    @property
    def magnitude(self) -> Number:
        if self.attention_factor is not None:
            return self.attention_factor
        growth = 0.1 * math.log(self.factor)
        if self.mscale and self.mscale_all_dim:
            return (self.mscale * growth + 1) / (self.mscale_all_dim * growth + 1)
        return growth + 1

    def scale(self, frequencies: Pairs, base: Number, _length: Length, /) -> Pairs:
        n = len(frequencies)
        # Turns within original_len = original_len · base^(−i / n) / 2π, solved for the pair i.
        low = n * math.log(self.original_len / (2 * math.pi * self.beta_fast), base)
        high = n * math.log(self.original_len / (2 * math.pi * self.beta_slow), base)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        # 2n − 1, although the last pair is n − 1: the authors' code does this, and models were
        # trained with it. A ramp of width 0 is a step.
        low, high = max(low, 0), min(high, 2 * n - 1)
        pairs = torch.arange(n, dtype=frequencies.dtype, device=frequencies.device)
        slowed = ((pairs - low) / (high - low or 1)).clamp(0, 1)
        return torch.lerp(frequencies, frequencies / self.factor, slowed)


@dataclass(frozen=True, slots=True)
class BandedScaling:
    """Three bands of wavelengths: short ones unchanged, long ones scaled, a blend in between.

    Published in the code that accompanies Grattafiori et al. 2024 (arXiv:2407.21783)::

        turns = original_len / wavelength
        turns ≥ high_freq_factor: keep the frequency    turns ≤ low_freq_factor: divide it by factor

    >>> bands = BandedScaling(8, low_freq_factor=1, high_freq_factor=4, original_len=8192)
    >>> from glassformer.functional.positions.rotary import Rotary
    >>> Rotary(8, scaling=bands).frequencies()
    tensor([1.0000e+00, 1.0000e-01, 1.0000e-02, 2.1361e-04], dtype=torch.float64)
    """

    factor: Number
    _: KW_ONLY
    low_freq_factor: Number
    high_freq_factor: Number
    original_len: int
    magnitude: ClassVar[Number] = 1.0

    def __post_init__(self) -> None:
        _check_reach(self.factor, self.original_len)
        if not 0 < self.low_freq_factor < self.high_freq_factor:
            raise ConfigError(
                "high_freq_factor must be greater than low_freq_factor, and that greater than 0; "
                f"got {self.high_freq_factor} and {self.low_freq_factor}."
            )

    def scale(self, frequencies: Pairs, _base: Number, _length: Length, /) -> Pairs:
        turns = self.original_len * frequencies / (2 * math.pi)
        kept = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        return torch.lerp(frequencies / self.factor, frequencies, kept.clamp(0, 1))


Scaling = LinearScaling | NTKScaling | YaRNScaling | BandedScaling


def _check_reach(factor: Number, original_len: int | None = None) -> None:
    if factor < 1:
        raise ConfigError(f"factor must be at least 1 to extend the context; got factor={factor}.")
    if original_len is not None and original_len < 1:
        raise ConfigError(f"original_len must be at least 1; got original_len={original_len}.")
