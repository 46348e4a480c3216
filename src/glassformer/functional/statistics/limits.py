"""Masks as six numbers for each sequence, which is all that the kernels know about them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.functional.cells import Extent
from glassformer.functional.masks import And, Causal, Mask, Not, Padding, Prefix, Window

_FAR = 1 << 30  # farther than any key: no limit


def is_band(mask: Mask) -> bool:
    """Whether six numbers for each sequence say all about a mask."""
    if isinstance(mask, And):
        return is_band(mask.a) and is_band(mask.b)
    if isinstance(mask, Not):
        return isinstance(mask.a, Prefix)
    return isinstance(mask, Causal | Window | Padding | Prefix)


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
        whole = cls(-_FAR, _FAR, 0, S, 0, L)
        match mask:
            case And():
                a, b = cls.of(mask.a, extent), cls.of(mask.b, extent)
                return cls(*map(_tighten, a, b, (max, min) * 3))
            case Causal():
                return whole._replace(high=_as_number(mask.offset, S - L))
            case Window():
                position = _as_number(mask.offset, S - L)
                low = -_FAR if mask.left is None else position - _as_number(mask.left)
                high = _FAR if mask.right is None else position + _as_number(mask.right)
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
            return _constant(tuple(max(min(int(n), _FAR), -_FAR) for n in self), device)
        each = (n if isinstance(n, Tensor) else torch.full((), n, device=device) for n in self)
        rows = torch.stack([n.expand(B) for n in each], dim=-1)
        return rows.clamp(-_FAR, _FAR).to(torch.int32)


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
