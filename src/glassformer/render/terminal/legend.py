"""A list of names and their meanings."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from glassformer.render.paragraph import Paragraph


def draw_legend(entries: Iterable[tuple[str, str]], *, style: str = "bold", gap: int = 2) -> Table:
    """Each name on one line, each meaning wrapped beside it.

    >>> from rich.console import Console
    >>> Console(width=12).print(draw_legend([("■", "may"), ("·", "not")]))
    ■  may
    ·  not
    """
    table = Table.grid(padding=(0, gap, 0, 0))
    table.add_column(no_wrap=True, style=style)
    table.add_column()
    for name, meaning in entries:
        table.add_row(Text(name), Paragraph(meaning))
    return table
