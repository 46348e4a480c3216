"""Rows of numbers with labels, drawn without torch: a grading shows them long before it loads."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.render.marks import label
from glassformer.render.numbers import format_numbers


def draw_numbers(
    numbers: Sequence[Sequence[float]],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str = "",
) -> RenderableType:
    """Numbers in rows, −∞ dim.

        我  爱  你
    我  10  −∞  −∞
    爱   9  12  −∞
    """
    shown = iter(format_numbers([number for row in numbers for number in row]))
    cells = ([_score(next(shown)) for _ in keys] for _ in queries)
    return draw_cells(cells, queries, keys, title)


def draw_cells(
    cells: Iterable[list[Text]], queries: Sequence[str], keys: Sequence[str], title: str
) -> RenderableType:
    """Cells in rows, with a label before each row and above each column."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("")
    for key in keys:
        table.add_column(label(key), justify="right", no_wrap=True)
    for query, row in zip(queries, cells, strict=True):
        table.add_row(label(query), *row)
    # A title set by rich would wrap at the width of the table.
    return Group(Text(title, style="bold"), table) if title else table


def _score(shown: str) -> Text:
    return Text(shown, style="dim" if shown == "−∞" else "")
