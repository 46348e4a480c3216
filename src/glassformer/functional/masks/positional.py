"""Positional masks: they depend only on the positions of query and key."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional.cells import Blocks, Bounds, Cells, Extent
from glassformer.functional.graph_capture import is_known_true
from glassformer.functional.masks.mask import Mask

Number = int | Int[Tensor, ""]  # a tensor if a compiled kernel must not depend on its value
Offset = Number | Int[Tensor, " B"] | None


@dataclass(frozen=True, eq=False, repr=False)
class Causal(Mask):
    """No query sees the future: key k is allowed iff k ≤ q + offset (default: S − L).

    In a cache of fixed size the last key is not the newest; `offset` is then the key position of
    the first query. It may be a tensor, so that compiled code is reused, also one per sequence.

    >>> print(Causal().dense(3)[0, 0].int())
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    offset: Offset = None

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        return cells.k <= cells.query_positions(self.offset)

    def bounds(self, blocks: Blocks) -> Bounds:
        (q_low, q_high), (k_low, k_high) = blocks.q_ends(), blocks.k_ends()
        offset = blocks.q_offset(self.offset)
        return Bounds(k_low <= q_high + offset, k_high <= q_low + offset)

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        if self.offset is None:
            return self
        check_offset(self.offset, extent)
        return super().fit_to(extent, device)


@dataclass(frozen=True, eq=False, repr=False)
class Window(Mask):
    """Nearby keys only: up to `left` before and `right` after the query; None means no limit.

    >>> print(Window(left=2, right=1).draw(5))
    ■ ■ · · ·
    ■ ■ ■ · ·
    ■ ■ ■ ■ ·
    · ■ ■ ■ ■
    · · ■ ■ ■
    """

    left: Number | None = None
    right: Number | None = None
    offset: Offset = None

    def __post_init__(self) -> None:
        if self.left is None and self.right is None:
            raise ConfigError(
                "Window needs left, right or both; got neither. For no limit use mask=None."
            )
        for name in ("left", "right"):
            width = getattr(self, name)
            if isinstance(width, int) and width < 0:
                raise ConfigError(
                    f"Window({name}=…) counts keys and must be at least 0; got {width}. "
                    "Use None for no limit on that side."
                )

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        ahead = cells.k - cells.query_positions(self.offset)
        before = None if self.left is None else ahead >= -self.left
        after = None if self.right is None else ahead <= self.right
        if before is None or after is None:
            return before if after is None else after  # type: ignore[return-value]  # never both
        return before & after

    def bounds(self, blocks: Blocks) -> Bounds:
        (q_low, q_high), (k_low, k_high) = blocks.q_ends(), blocks.k_ends()
        offset = blocks.q_offset(self.offset)
        least, most = k_low - q_high - offset, k_high - q_low - offset
        left = torch.inf if self.left is None else self.left
        right = torch.inf if self.right is None else self.right
        return Bounds((most >= -left) & (least <= right), (least >= -left) & (most <= right))

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        check_offset(self.offset, extent)
        return super().fit_to(extent, device)


@dataclass(frozen=True, eq=False, repr=False)
class Prefix(Mask):
    """Every query sees the first `length` keys: `Causal() | Prefix(n)` is a prefix LM.

    >>> print((Causal() | Prefix(2)).dense(3)[0, 0].int())
    tensor([[1, 1, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    length: Number | Int[Tensor, " B"]

    def __post_init__(self) -> None:
        if isinstance(self.length, int) and self.length < 0:
            raise ConfigError(
                f"Prefix(length) counts keys and must be at least 0; got {self.length}."
            )

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        per_sequence = isinstance(self.length, Tensor) and self.length.ndim == 1
        return cells.k < (self.length[cells.b] if per_sequence else self.length)  # type: ignore[index]

    def bounds(self, blocks: Blocks) -> Bounds:
        length = self.length.view(-1, 1, 1, 1) if isinstance(self.length, Tensor) else self.length
        k_low, k_high = blocks.k_ends()
        return Bounds((k_low < length), (k_high < length))

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        if isinstance(self.length, Tensor):
            if self.length.shape != (extent.B,) or self.length.is_floating_point():
                raise ShapeError(
                    f"Prefix needs an int or one whole number per sequence, ({extent.B},); got "
                    f"{self.length.dtype} of shape {tuple(self.length.shape)}."
                )
        elif is_known_true(self.length > extent.S):
            raise ShapeError(
                f"Prefix(length) must lie in 0 … {extent.S}, the number of keys; got {self.length}."
            )
        return super().fit_to(extent, device)

    def data_extent(self) -> Extent:
        return Extent(torch.as_tensor(self.length).numel(), 1, 0, 0)

    def min_extent(self) -> Extent:
        return Extent(1, 1, 0, int(torch.as_tensor(self.length).max()) + 3)


def check_offset(offset: Offset, extent: Extent) -> None:
    """Check that an offset is one integer, or one per sequence."""
    if not isinstance(offset, Tensor):
        return
    if offset.is_floating_point() or tuple(offset.shape) not in ((), (extent.B,)):
        raise ShapeError(
            f"offset must be a whole number or one per sequence, ({extent.B},); got "
            f"{offset.dtype} of shape {tuple(offset.shape)}."
        )
