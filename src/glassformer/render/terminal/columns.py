"""Drawings side by side as far as the width allows, then below."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table


class Beside:
    """Drawings in reading order, each at its natural width, with gaps between them.

    >>> Console(width=5).print(Beside("a", "b", gap=3))
    a   b
    """

    def __init__(self, *drawings: RenderableType, gap: int = 5) -> None:
        self.drawings = drawings
        self.gap = gap

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        row: list[RenderableType] = []
        used = 0
        for drawing in self.drawings:
            width = Measurement.get(console, options, drawing).maximum
            if row and used + self.gap + width > options.max_width:
                yield self._grid(row)
                yield ""
                row, used = [], 0
            used += width + (self.gap if row else 0)
            row.append(drawing)
        yield self._grid(row)

    def _grid(self, row: list[RenderableType]) -> Table:
        grid = Table.grid(padding=(0, self.gap, 0, 0))
        for _ in row:
            grid.add_column(vertical="top")
        grid.add_row(*row)
        return grid
