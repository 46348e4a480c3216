"""One mark for each head of each layer, wrapped to the width of the window."""

import math
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from glassformer.render.marks import HIDDEN, shade, visible_token

_MANY = 20  # heads up to which each mark is two cells wide
_NOTHING = 1e-6  # a difference that is rounding
_LEAST = 1e-9  # so that 0 has a mark too: a blank would mean that there is no head
_MOST_NAME = 24  # cells


def draw_marks(
    title: str,
    rows: Mapping[str, Sequence[float]],
    heads: Sequence[int],
    *,
    width: int = 80,
    group: int = 1,
    blank_zero: bool = False,
) -> Table:
    """Rows of names, columns of heads; a shade for each value from 0 to 1, a dot for NaN.

    Each `group` of heads that share keys and values is underlined by a bracket. Heads that do not
    fit continue below, under their own numbers. With `blank_zero`, for differences, 0 has no mark.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    names = [visible_token(name, _MOST_NAME) for name in rows]
    side = max(map(cell_len, (title, *names)), default=0) + 2
    many = len(heads) > _MANY
    cells = 1 if many else 3
    each = max(1, (width - side + (0 if many else 1)) // cells)
    if group > 1 and each > group:
        each -= each % group  # keep a bracket on one line if it fits
    for start in range(0, len(heads), each):
        some = range(start, min(start + each, len(heads)))
        table.add_row(
            Text(title if not start else "", style="bold"),
            Text(_numbers([heads[i] for i in some], many), style="dim"),
        )
        if group > 1:
            table.add_row("", Text(_brackets(some, group, many), style="dim"))
        for name, values in zip(names, rows.values(), strict=True):
            marks = [_mark(values[i], blank_zero) for i in some if i < len(values)]
            line = "".join(marks) if many else " ".join(mark * 2 for mark in marks)
            table.add_row(name, Text(line, style="cyan"))
    return table


def _mark(value: float, blank_zero: bool) -> str:
    if blank_zero and value < _NOTHING:
        return " "
    return HIDDEN if math.isnan(value) else shade(max(value, _LEAST))


def _numbers(heads: Sequence[int], many: bool) -> str:
    """The head numbers above the marks; every eighth if the marks are narrow."""
    if many:
        return "".join(str(head).ljust(8) for head in heads[::8]).rstrip()
    return " ".join(str(head).rjust(2) for head in heads)


def _brackets(some: range, group: int, many: bool) -> str:
    """A bracket under the heads of each group.

    >>> _brackets(range(4), 2, False), _brackets(range(6), 3, True)
    ('└───┘ └───┘', '└─┘└─┘')
    """
    wide = 1 if many else 2
    line = ""
    for head in some:
        is_first, is_last = head % group == 0, head % group == group - 1
        mark = ("└" if is_first else "─") + ("┘" if is_last else "─") * (wide - 1)
        if wide == 1:
            mark = "└" if is_first else "┘" if is_last else "─"
        gap = "" if many else " " if is_last else "─"
        line += mark + gap
    return line.rstrip(" ─") if some[-1] % group == group - 1 else line.rstrip(" ")
