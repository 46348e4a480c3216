"""What is kept of a run: some layers, some heads, some rows, every n-th step of generation."""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional import (
    ALiBi,
    Bias,
    Causal,
    Explicit,
    ExplicitBias,
    Mask,
    RelativeBuckets,
    Window,
)
from glassformer.functional.cells import Extent, Tile, as_4d
from glassformer.tracing.head_shards import HeadShard

Rows = slice | Collection[int] | Literal["last"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is kept; None keeps all.

    `rows` are positions in the text; "last" is the last row of each call, which predicts the next
    token. Of generation, steps 0, every, 2 · every … are kept.
    """

    layers: Collection[int] | None = None
    heads: Collection[int] | None = None
    rows: Rows | None = None
    every: int = 1

    def __post_init__(self) -> None:
        if self.every < 1:
            raise TraceError(f"every must be at least 1; got every={self.every}.")
        rows = self.rows
        if isinstance(rows, str) and rows != "last":
            raise TraceError(f'rows must be places in the text, or "last"; got {rows!r}.')
        if isinstance(rows, slice):
            ends = [n for n in (rows.start, rows.stop) if n is not None]
            if any(n < 0 for n in ends) or (rows.step or 1) < 1:
                raise TraceError(
                    "rows are chosen while the text grows, so a slice counts from its beginning; "
                    f'got {rows}. Use rows="last" for the last row of each call.'
                )
        for name in ("layers", "heads", "rows"):
            chosen = getattr(self, name)
            if chosen is None or isinstance(chosen, str | slice):
                continue
            if not chosen or min(chosen) < 0:
                raise TraceError(f"{name} must be numbers from 0 up; got {sorted(chosen)}.")

    def check(self, n_layers: int | None, n_heads: int) -> None:
        """Reject out-of-range layers and heads up front; None where the number is not known."""
        for name, n in (("layers", n_layers), ("heads", n_heads)):
            chosen = getattr(self, name)
            if chosen is not None and n is not None and max(chosen) >= n:
                raise TraceError(f"This model has {name} 0 … {n - 1}; got {name}={sorted(chosen)}.")

    @property
    def is_partial(self) -> bool:
        """Whether some rows may be left out."""
        return self.rows is not None or self.every > 1

    def has_layer(self, layer: int | None) -> bool:
        return self.layers is None or layer in self.layers

    def head_numbers(
        self, n_heads: int, name: str, shard: HeadShard | None = None
    ) -> tuple[int, ...] | None:
        """The selected heads of a site; None for all of them.

        Of a shard, those of its heads that are selected, counted from its first.
        """
        if self.heads is None:
            return None
        chosen = tuple(sorted(set(self.heads)))
        first, total = (0, n_heads) if shard is None else shard
        if chosen[-1] >= total:
            raise TraceError(f"{name} has heads 0 … {total - 1}; got heads={list(chosen)}.")
        return tuple(head - first for head in chosen if first <= head < first + n_heads)

    def row_positions(
        self, start: int, n_rows: int, *, step: int, device: torch.device
    ) -> Int[Tensor, " R"] | None:
        """Which of the rows `start` … of one call are kept, counted from 0; None for all."""
        if not self.is_partial:
            return None
        if step % self.every:
            return torch.empty(0, dtype=torch.long, device=device)
        if self.rows is None:
            return torch.arange(n_rows, device=device)
        if self.rows == "last":
            return torch.tensor([n_rows - 1], device=device)
        stop = start + n_rows
        if isinstance(self.rows, slice):
            numbers = range(*self.rows.indices(stop))
        else:
            numbers = sorted(set(self.rows))  # type: ignore[arg-type]
        inside = [n - start for n in numbers if start <= n < stop]
        return torch.tensor(inside, dtype=torch.long, device=device)


def slice_operand(
    operand: Tensor, heads: tuple[int, ...] | None, rows: Int[Tensor, " R"] | None = None
) -> Tensor:
    """Some heads and rows of an operand, (B, H, L, …), in memory of their own."""
    if heads is not None:
        operand = operand[:, list(heads)]
    return operand if rows is None else operand.index_select(2, rows)


def select_heads(part: Any, heads: tuple[int, ...] | None) -> Any:
    """A mask or a bias for some of the heads."""
    if part is None or heads is None:
        return part
    chosen = list(heads)
    match part:
        case ALiBi():
            return replace(part, slopes=part.slopes[chosen])
        case RelativeBuckets():
            return replace(part, table=part.table[:, chosen])
        case Explicit() | ExplicitBias():
            tensor = as_4d(part.tensor)
            return replace(part, tensor=tensor[:, chosen]) if tensor.shape[1] > 1 else part
    return _map_parts(part, lambda inner: select_heads(inner, heads))


def select_rows(part: Any, rows: Int[Tensor, " R"] | None, extent: Extent) -> Any:
    """A mask or a bias for some of the rows: a formula where rows are adjacent, else cells."""
    if part is None or rows is None or not len(rows):
        return part
    numbers = rows.tolist()
    first, n = numbers[0], len(numbers)
    is_one_piece = numbers == list(range(first, first + n))
    if is_one_piece and _is_relative(part):
        return _shift(part, first, extent, n)
    tile = Tile(extent, rows, slice(0, extent.S), rows.device)
    cells = part.fit_to(extent, rows.device).tile(tile)
    cells = cells.view((1,) * (4 - cells.ndim) + cells.shape)
    cells = cells.expand(*cells.shape[:2], n, extent.S).clone()
    return Explicit(cells) if isinstance(part, Mask) else ExplicitBias(cells)


def _is_relative(part: Any) -> bool:
    """Whether a mask or bias depends on a query only by its position."""
    if isinstance(part, Causal | Window | ALiBi | RelativeBuckets):
        return True
    inner = [v for f in fields(part) if isinstance(v := getattr(part, f.name), Mask | Bias)]
    return bool(inner) and all(map(_is_relative, inner))


def _shift(part: Any, first: int, extent: Extent, n: int) -> Any:
    if not isinstance(part, Causal | Window | ALiBi | RelativeBuckets):
        return _map_parts(part, lambda inner: _shift(inner, first, extent, n))
    offset = extent.S - extent.L if part.offset is None else part.offset
    offset = offset + first
    if not isinstance(offset, Tensor) and offset == extent.S - n:
        return replace(part, offset=None)
    return replace(part, offset=offset)


def _map_parts(part: Any, change: Any) -> Any:
    """The same, with the masks or biases that it is composed of changed."""
    inner = {f.name: getattr(part, f.name) for f in fields(part)}
    return replace(
        part, **{name: change(v) for name, v in inner.items() if isinstance(v, Mask | Bias)}
    )
