"""What every mask can do, and the three ways to combine masks: `&`, `|` and `~`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.errors import ConfigError, DtypeError
from glassformer.functional.cells import Blocks, Bounds, Cells, Extent, Tile
from glassformer.functional.drawing import draw_cells


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
        """What is known of whole blocks: never wrong, though an empty one may count as possible."""

    def fitted(self, extent: Extent, device: torch.device) -> "Mask":
        """This mask checked against the tensors it is used with, its lists turned into tensors."""
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
        cells = self.fitted(whole.extent, whole.device).tile(whole)
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
        """The mask as text: ■ may attend, · may not, ▣ mixed, where a mark covers many cells."""
        B, H, L, S = self.drawn_extent(n_queries, n_keys)
        B, H = max(B, batch + 1), max(H, head + 1)
        cells = self.to("cpu").dense(L, S, batch=B, n_heads=H).expand(B, H, L, S)
        return draw_cells(cells[batch, head], most=most)

    def drawn_extent(self, n_queries: int | None = None, n_keys: int | None = None) -> Extent:
        """The sizes to draw at: as asked for, else what the mask's data speak of, else 8."""
        own, least = self.own_extent(), self.least_extent()
        S = n_keys or own.S or least.S or n_queries or own.L or least.L or 8
        return Extent(own.B, own.H, n_queries or own.L or least.L or S, S)

    def own_extent(self) -> Extent:
        """The sizes that the mask's own data have; 0 where they leave it open."""
        return Extent(1, 1, 0, 0)

    def least_extent(self) -> Extent:
        """The sizes that it takes to see what the mask does; 0 where any will do."""
        return Extent(1, 1, 0, 0)

    def to(self, device: torch.device | str) -> "Mask":
        """The same mask with its tensors on another device."""
        return replace(self, **{name: value.to(device) for name, value in self._tensors()})

    def traced(self, device: torch.device) -> "Mask":
        """The same mask with its numbers as tensors, so that a compiled kernel serves them all."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        numbers = {name: value for name, value in values.items() if type(value) is int}
        return replace(self, **{n: torch.tensor(v, device=device) for n, v in numbers.items()})

    @property
    def is_static(self) -> bool:
        """True if the mask holds no tensor: its printed form then says everything about it."""
        return not self._tensors()

    def _tensors(self) -> list[tuple[str, Tensor]]:
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return [(name, value) for name, value in values if isinstance(value, Tensor)]

    def __repr__(self) -> str:
        values = [(f, getattr(self, f.name)) for f in fields(self)]
        shown = [f"{f.name}={_brief(value)}" for f, value in values if value is not f.default]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __str__(self) -> str:
        B = self.own_extent().B
        which = f"  (sequence 0 of {B})" if B > 1 else ""
        return f"{self!r}{which}\n{self.draw()}"

    def __and__(self, other: "Mask | Tensor") -> "Mask":
        return And(self, _operand(other))

    def __or__(self, other: "Mask | Tensor") -> "Mask":
        return Or(self, _operand(other))

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

    def fitted(self, extent: Extent, device: torch.device) -> Mask:
        return replace(self, a=self.a.fitted(extent, device), b=self.b.fitted(extent, device))

    def own_extent(self) -> Extent:
        return Extent(*map(max, self.a.own_extent(), self.b.own_extent()))

    def least_extent(self) -> Extent:
        return Extent(*map(max, self.a.least_extent(), self.b.least_extent()))

    def to(self, device: torch.device | str) -> Mask:
        return replace(self, a=self.a.to(device), b=self.b.to(device))

    def traced(self, device: torch.device) -> Mask:
        return replace(self, a=self.a.traced(device), b=self.b.traced(device))

    @property
    def is_static(self) -> bool:
        return self.a.is_static and self.b.is_static

    def _joined(self, sign: str) -> str:
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
        return self._joined("&")


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
        return self._joined("|")


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
        return Bounds(_negated(a.certain), _negated(a.possible))

    def fitted(self, extent: Extent, device: torch.device) -> Mask:
        return Not(self.a.fitted(extent, device))

    def own_extent(self) -> Extent:
        return self.a.own_extent()

    def least_extent(self) -> Extent:
        return self.a.least_extent()

    def to(self, device: torch.device | str) -> "Not":
        return Not(self.a.to(device))

    def traced(self, device: torch.device) -> Mask:
        return Not(self.a.traced(device))

    @property
    def is_static(self) -> bool:
        return self.a.is_static

    def __repr__(self) -> str:
        return f"~({self.a!r})" if isinstance(self.a, _Pair) else f"~{self.a!r}"


def _negated(known: Any) -> Any:
    # A tensor by block; for the whole matrix a plain bool, or a symbol where sizes are dynamic.
    return ~known if isinstance(known, Tensor) else torch.sym_not(known)


def _operand(other: "Mask | Tensor") -> Mask:
    # Imported here because explicit.py builds on this file.
    from glassformer.functional.masks.explicit import as_mask

    return as_mask(other)


def _brief(value: object) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    if value.ndim <= 1 and value.numel() <= 8 and not value.is_meta:
        return str(value.tolist())
    return "×".join(map(str, value.shape)) + f" {str(value.dtype).removeprefix('torch.')}"
