"""Masks as six numbers for each sequence, which is all that the kernels know about them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.cells import Extent
from glassformer.functional.masks import And, Causal, Mask, Not, Or, Padding, Prefix, Window

FAR = 1 << 30  # farther than any key: no limit


def is_band(mask: Mask) -> bool:
    """Whether six numbers for each sequence say all about a mask."""
    if isinstance(mask, And):
        return is_band(mask.a) and is_band(mask.b)
    if isinstance(mask, Not):
        return isinstance(mask.a, Prefix)
    return isinstance(mask, Causal | Window | Padding | Prefix)


def is_aligned(mask: Mask | None) -> bool:
    """Whether a band means the same in every sequence of a packed batch: no tensors, no offsets."""
    match mask:
        case And() | Or():
            return is_aligned(mask.a) and is_aligned(mask.b)
        case Not():
            return is_aligned(mask.a)
        case Causal():
            return mask.offset is None
        case Window():
            return (
                mask.offset is None
                and isinstance(mask.left, int | None)
                and isinstance(mask.right, int | None)
            )
        case Prefix():
            return isinstance(mask.length, int)
    return mask is None


def split_bands(mask: Mask) -> list[tuple[int, Mask]] | None:
    """Bands with signs whose sums over cells are that over the mask; None if there are none.

    a | b counts twice what both cover, so a & b is subtracted.
    """
    if is_band(mask):
        return [(1, mask)]
    if isinstance(mask, Or) and is_band(mask.a) and is_band(mask.b):
        return [(1, mask.a), (1, mask.b), (-1, And(mask.a, mask.b))]
    return None


class Limits(NamedTuple):
    """Where attention is allowed: a band along the diagonal, within a rectangle.

    Query i may see the keys i + low … i + high. A tensor holds one number for each sequence.
    """

    low: int | Tensor
    high: int | Tensor
    first_key: int | Tensor
    stop_key: int | Tensor
    first_query: int | Tensor
    stop_query: int | Tensor

    @classmethod
    def of(cls, mask: Mask | None, extent: Extent) -> "Limits":
        """The limits of a mask that is a band."""
        L, S = extent[2:]
        whole = cls(-FAR, FAR, 0, S, 0, L)
        match mask:
            case And():
                a, b = cls.of(mask.a, extent), cls.of(mask.b, extent)
                return cls(*map(_tighten, a, b, (max, min) * 3))
            case Causal():
                return whole._replace(high=_as_number(mask.offset, S - L))
            case Window():
                position = _as_number(mask.offset, S - L)
                low = -FAR if mask.left is None else position - _as_number(mask.left)
                high = FAR if mask.right is None else position + _as_number(mask.right)
                return whole._replace(low=low, high=high)
            case Prefix():
                return whole._replace(stop_key=_as_number(mask.length))
            case Not(a=Prefix() as hidden):
                return whole._replace(first_key=_as_number(hidden.length))
            case Padding():
                n, right = _as_number(mask.lengths), mask.side == "right"
                keys = {"stop_key": n} if right else {"first_key": S - n}
                queries = {"stop_query": n} if right else {"first_query": L - n}
                parts = {"keys": keys, "queries": queries, "both": keys | queries}
                return whole._replace(**parts[mask.of])
        return whole

    def tensor(self, B: int, device: torch.device) -> Int[Tensor, "b 6"]:
        """One row for all sequences, or one for each."""
        if not any(isinstance(n, Tensor) for n in self):
            return _constant(tuple(max(min(int(n), FAR), -FAR) for n in self), device)
        each = (n if isinstance(n, Tensor) else torch.full((), n, device=device) for n in self)
        rows = torch.stack([n.expand(B) for n in each], dim=-1)
        return rows.clamp(-FAR, FAR).to(torch.int32)


class BandSums(NamedTuple):
    """What masks cover, as sums over bands: the limits of all bands, and a sum for each row."""

    limits: Int[Tensor, "n B 6"]
    sums: Float[Tensor, "n B H L"]
    signs: tuple[tuple[int, ...], ...]  # of each mask: those of its bands

    @classmethod
    def of(cls, masks: tuple[Mask, ...], extent: Extent, device: torch.device) -> "BandSums":
        """No sums yet, for masks that `split_bands` can split."""
        split = [split_bands(mask) or [] for mask in masks]
        bands = [Limits.of(band, extent).tensor(extent.B, device) for s in split for _, band in s]
        limits = torch.empty(0, extent.B, 6, dtype=torch.int32, device=device)
        if bands:
            limits = torch.stack([band.expand(extent.B, 6) for band in bands])
        sums = torch.zeros(len(limits), *extent[:3], device=device)
        return cls(limits, sums, tuple(tuple(sign for sign, _ in s) for s in split))

    def join(self) -> tuple[Float[Tensor, "B H L"], ...]:
        """The sum over the cells of each mask."""
        each = iter(self.sums)
        return tuple(
            sum((sign * next(each) for sign in signs), torch.zeros_like(self.sums[0]))
            for signs in self.signs
        )


def _tighten(a: Any, b: Any, which: Callable[[int, int], int]) -> int | Tensor:
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return which(a, b)
    tensor, other = (a, b) if isinstance(a, Tensor) else (b, a)
    return tensor.clamp(min=other) if which is max else tensor.clamp(max=other)


def _as_number(value: Any, default: int | None = None) -> Any:
    if value is None:
        return default
    return value.long() if isinstance(value, Tensor) else value


# Cached: copying numbers to a GPU waits for its queued work.
@lru_cache(maxsize=256)
def _constant(numbers: tuple[int, ...], device: torch.device) -> Int[Tensor, "1 n"]:
    return torch.tensor([numbers], dtype=torch.int32, device=device)
