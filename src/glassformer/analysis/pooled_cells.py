"""Blocks of cells pooled two by two, again and again: the levels of a zoom.

A block keeps the largest of its weights, their sum, and the number of its visible cells, so that
its maximum and its mean follow at every level without looking at the cells again.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

HIDDEN = -1.0  # instead of a weight: nothing may be attended to
Join = Callable[[Tensor, Tensor], Tensor]


class PooledCells(NamedTuple):
    """Blocks of cells: the largest weight, the sum, and how many of the cells are visible."""

    maximum: Float[Tensor, "R C"]
    mass: Float[Tensor, "R C"]
    seen: Float[Tensor, "R C"]

    @classmethod
    def zeros(cls, rows: int, cols: int, like: Tensor) -> "PooledCells":
        """Blocks of which nothing is visible."""
        return cls(*(like.new_zeros(rows, cols) for _ in cls._fields))

    @property
    def mean(self) -> Float[Tensor, "R C"]:
        """The mean weight of the visible cells; 0 where there are none."""
        return self.mass / self.seen.clamp(min=1)

    def values(self, pool: str) -> Float[Tensor, "R C"]:
        """The largest or the mean weight of each block; −1 where nothing is visible."""
        found = self.maximum if pool == "max" else self.mean
        return found.masked_fill(self.seen == 0, HIDDEN)

    def halve(self) -> "PooledCells":
        """The next level: each block covers two by two of these; a last odd one is half full."""
        larger = torch.maximum
        return PooledCells(
            _pair_columns(_pair_rows(self.maximum, larger), larger),
            _pair_columns(_pair_rows(self.mass, torch.add), torch.add),
            _pair_columns(_pair_rows(self.seen, torch.add), torch.add),
        )

    def pool(self, times: int) -> "PooledCells":
        """The level so many steps above."""
        cells = self
        for _ in range(times):
            cells = cells.halve()
        return cells

    def with_column(self, column: "PooledCells") -> "PooledCells":
        """The same, with the cells of one more column in the blocks of the first."""
        own = [each.clone() for each in self]
        own[0][:, :1] = torch.maximum(own[0][:, :1], column.maximum)
        own[1][:, :1] += column.mass
        own[2][:, :1] += column.seen
        return PooledCells(*own)


def pool_rows(values: Float[Tensor, " L"], level: int) -> Float[Tensor, " R"]:
    """The largest of each 2^level values; they must not be negative."""
    padded = torch.nn.functional.pad(values, (0, -len(values) % (1 << level)))
    return padded.unflatten(0, (-1, 1 << level)).amax(-1)


def _pair_rows(values: Tensor, join: Join) -> Tensor:
    if len(values) % 2:
        values = torch.cat([values, values.new_zeros(1, values.shape[1])])
    return join(values[0::2], values[1::2])


def _pair_columns(values: Tensor, join: Join) -> Tensor:
    if values.shape[1] % 2:
        values = torch.cat([values, values.new_zeros(len(values), 1)], dim=1)
    return join(values[:, 0::2], values[:, 1::2])
