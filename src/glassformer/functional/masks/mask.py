"""The interface of all masks, and the three ways to combine them: `&`, `|` and `~`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.errors import ConfigError, DtypeError
from glassformer.functional.cells import Blocks, Bounds, Cells, Extent, Tile
from glassformer.functional.drawing import draw_cells

_FAR = 1 << 30  # no distance is larger, and sums of two still have 32 bits


@dataclass(frozen=True, eq=False, repr=False)
class Mask(ABC):
    """Which query may attend to which key.

    >>> import glassformer as gf
    >>> print(gf.Causal() & gf.Window(left=1))
    Causal() & Window(left=1)
    ■ · · · · · · ·
    ■ ■ · · · · · ·
    · ■ ■ · · · · ·
    · · ■ ■ · · · ·
    · · · ■ ■ · · ·
    · · · · ■ ■ · ·
    · · · · · ■ ■ ·
    · · · · · · ■ ■
    """

    @abstractmethod
    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        """The formula: True at the cells that may attend."""

    @abstractmethod
    def bounds(self, blocks: Blocks) -> Bounds:
        """Bounds for whole blocks: never wrong, but an empty block may count as possible."""

    def fit_to(self, extent: Extent, device: torch.device) -> "Mask":
        """Check this mask against the shapes and the device in use; lists become tensors."""
        del extent
        for name, value in self._tensors():
            if value.device != device:
                raise DtypeError(
                    f"A mask's tensors must be on the device of q; got {name} of {self!r} on "
                    f"{value.device} and q on {device}. Use mask.to({str(device)!r})."
                )
        return self

    def tile(self, tile: Tile) -> Bool[Tensor, "..."]:
        """The mask inside a rectangle, broadcastable to (B, H, R, C)."""
        return self.allows(tile.cells())

    def dense(
        self,
        n_queries: int,
        n_keys: int | None = None,
        *,
        batch: int = 1,
        n_heads: int = 1,
        device: torch.device | str = "cpu",
    ) -> Bool[Tensor, "b h L S"]:
        """The mask as one boolean tensor, (B or 1, H or 1, L, S).

        >>> import glassformer as gf
        >>> gf.Causal().dense(2, 3).int().tolist()
        [[[[1, 1, 0], [1, 1, 1]]]]
        """
        L, S = n_queries, n_queries if n_keys is None else n_keys
        whole = Tile.whole(Extent(batch, n_heads, L, S), torch.empty(0, device=device).device)
        cells = self.fit_to(whole.extent, whole.device).tile(whole)
        cells = cells.view((1,) * (4 - cells.ndim) + cells.shape)
        return cells.expand(*cells.shape[:2], L, S)

    def draw(
        self,
        n_queries: int | None = None,
        n_keys: int | None = None,
        *,
        batch: int = 0,
        head: int = 0,
        most: int = 48,
    ) -> str:
        """The mask as text: ■ may attend, · may not, ▣ mixed (if a mark covers many cells)."""
        B, H, L, S = self.drawing_extent(n_queries, n_keys)
        B, H = max(B, batch + 1), max(H, head + 1)
        cells = self.to("cpu").dense(L, S, batch=B, n_heads=H).expand(B, H, L, S)
        return draw_cells(cells[batch, head], most=most)

    def drawing_extent(self, n_queries: int | None = None, n_keys: int | None = None) -> Extent:
        """The sizes to draw: as requested, else from the mask's data, else 8."""
        own, least = self.data_extent(), self.min_extent()
        S = n_keys or own.S or least.S or n_queries or own.L or least.L or 8
        return Extent(own.B, own.H, n_queries or own.L or least.L or S, S)

    def data_extent(self) -> Extent:
        """The sizes of the mask's own data; 0 where they are not fixed."""
        return Extent(1, 1, 0, 0)

    def min_extent(self) -> Extent:
        """The smallest sizes that show what the mask does; 0 where any will do."""
        return Extent(1, 1, 0, 0)

    def to(self, device: torch.device | str) -> "Mask":
        """The same mask with its tensors on another device."""
        return replace(self, **{name: value.to(device) for name, value in self._tensors()})

    def to_tensors(self, device: torch.device) -> "Mask":
        """The same mask with its numbers as tensors: one compiled kernel serves all values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        numbers = {name: value for name, value in values.items() if type(value) is int}
        near = {name: max(-_FAR, min(_FAR, value)) for name, value in numbers.items()}
        # Filled on the device: copying a number to a GPU would wait for all that it computes.
        as_tensor = partial(torch.full, (), dtype=torch.int32, device=device)
        return replace(self, **{name: as_tensor(value) for name, value in near.items()})

    @property
    def is_static(self) -> bool:
        """True if the mask holds no tensor, so that its printed form describes it completely."""
        return not self._tensors()

    def _tensors(self) -> list[tuple[str, Tensor]]:
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return [(name, value) for name, value in values if isinstance(value, Tensor)]

    def __repr__(self) -> str:
        values = [(f, getattr(self, f.name)) for f in fields(self)]
        shown = [f"{f.name}={_brief(value)}" for f, value in values if value is not f.default]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __str__(self) -> str:
        B = self.data_extent().B
        which = f"  (sequence 0 of {B})" if B > 1 else ""
        return f"{self!r}{which}\n{self.draw()}"

    def __and__(self, other: "Mask | Tensor") -> "Mask":
        return And(self, _as_operand(other))

    def __or__(self, other: "Mask | Tensor") -> "Mask":
        return Or(self, _as_operand(other))

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> "Mask":
        return Not(self)

    def __bool__(self) -> bool:
        raise ConfigError(
            f"A mask has no truth value of its own; got {self!r} in `and`, `or`, `not` or `if`. "
            "Combine masks with & | ~."
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Pair(Mask):
    a: Mask
    b: Mask

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        a, b = self.a.fit_to(extent, device), self.b.fit_to(extent, device)
        return self if a is self.a and b is self.b else replace(self, a=a, b=b)

    def data_extent(self) -> Extent:
        return Extent(*map(max, self.a.data_extent(), self.b.data_extent()))

    def min_extent(self) -> Extent:
        return Extent(*map(max, self.a.min_extent(), self.b.min_extent()))

    def to(self, device: torch.device | str) -> Mask:
        return replace(self, a=self.a.to(device), b=self.b.to(device))

    def to_tensors(self, device: torch.device) -> Mask:
        return replace(self, a=self.a.to_tensors(device), b=self.b.to_tensors(device))

    @property
    def is_static(self) -> bool:
        return self.a.is_static and self.b.is_static

    def _join_sides(self, sign: str) -> str:
        sides = (
            repr(m) if not isinstance(m, _Pair) or type(m) is type(self) else f"({m!r})"
            for m in (self.a, self.b)
        )
        return f" {sign} ".join(sides)


class And(_Pair):
    """Allowed by both."""

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        return self.a.allows(cells) & self.b.allows(cells)

    def tile(self, tile: Tile) -> Bool[Tensor, "..."]:
        return self.a.tile(tile) & self.b.tile(tile)

    def bounds(self, blocks: Blocks) -> Bounds:
        a, b = self.a.bounds(blocks), self.b.bounds(blocks)
        return Bounds(a.possible & b.possible, a.certain & b.certain)

    def __repr__(self) -> str:
        return self._join_sides("&")


class Or(_Pair):
    """Allowed by one or the other."""

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        return self.a.allows(cells) | self.b.allows(cells)

    def tile(self, tile: Tile) -> Bool[Tensor, "..."]:
        return self.a.tile(tile) | self.b.tile(tile)

    def bounds(self, blocks: Blocks) -> Bounds:
        a, b = self.a.bounds(blocks), self.b.bounds(blocks)
        return Bounds(a.possible | b.possible, a.certain | b.certain)

    def __repr__(self) -> str:
        return self._join_sides("|")


@dataclass(frozen=True, eq=False, repr=False)
class Not(Mask):
    """Allowed where the other is not."""

    a: Mask

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        return ~self.a.allows(cells)

    def tile(self, tile: Tile) -> Bool[Tensor, "..."]:
        return ~self.a.tile(tile)

    def bounds(self, blocks: Blocks) -> Bounds:
        a = self.a.bounds(blocks)
        return Bounds(_negate(a.certain), _negate(a.possible))

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        a = self.a.fit_to(extent, device)
        return self if a is self.a else Not(a)

    def data_extent(self) -> Extent:
        return self.a.data_extent()

    def min_extent(self) -> Extent:
        return self.a.min_extent()

    def to(self, device: torch.device | str) -> "Not":
        return Not(self.a.to(device))

    def to_tensors(self, device: torch.device) -> Mask:
        return Not(self.a.to_tensors(device))

    @property
    def is_static(self) -> bool:
        return self.a.is_static

    def __repr__(self) -> str:
        return f"~({self.a!r})" if isinstance(self.a, _Pair) else f"~{self.a!r}"


def _negate(known: Any) -> Any:
    # One tensor for blocks; a bool for the whole matrix, or symbolic if sizes are dynamic.
    return ~known if isinstance(known, Tensor) else torch.sym_not(known)


def _as_operand(other: "Mask | Tensor") -> Mask:
    # Imported here because explicit.py builds on this file.
    from glassformer.functional.masks.explicit import as_mask

    return as_mask(other)


def _brief(value: object) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    if value.ndim <= 1 and value.numel() <= 8 and not value.is_meta:
        return str(value.tolist())
    return "×".join(map(str, value.shape)) + f" {str(value.dtype).removeprefix('torch.')}"
