"""A grid of heads in which those that share keys and values are grouped under a bracket."""

from typing import Any

from glassformer.languages import Language
from glassformer.tracing import Site

_COLUMNS = 4
_MOST_COLUMNS = 8
_LINE = "#8a8a8a"


def grid_shape(site: Site) -> tuple[int, int, int]:
    """Rows, columns, and heads per key-value head; a group stays on one row if it fits.

    16 heads on 4 key-value heads: 4 × 4; 12 on 4: 3 × 6, two groups per row.
    """
    H = site.n_heads
    group = H // site.k.shape[1] if site.k.shape[1] else 1
    if group > 1:
        columns = group * max(1, _COLUMNS // group) if group <= _MOST_COLUMNS else _MOST_COLUMNS
    else:
        columns = _COLUMNS if H % _COLUMNS == 0 or H > _COLUMNS else H
    columns = min(columns, H)
    return -(-H // columns), columns, group


def draw_brackets(
    figure: Any, panels: list[Any], columns: int, group: int, language: Language
) -> None:
    """Draw a bracket above the heads of each group, with the number of its key-value head."""
    from matplotlib.lines import Line2D

    figure.get_layout_engine().set(h_pad=0.2)
    figure.draw_without_rendering()  # computes the positions of the panels
    inch = 1 / figure.get_figheight()
    for start in range(0, len(panels), group):
        for first, last in _lines(start, min(start + group, len(panels)), columns):
            left = panels[first].get_position().x0
            right, top = panels[last].get_position().x1, panels[first].get_position().y1
            low, high = top + 0.2 * inch, top + 0.26 * inch
            ends = ([left, left, right, right], [low, high, high, low])
            line = Line2D(*ends, color=_LINE, lw=1, transform=figure.transFigure)
            line.set_in_layout(False)
            figure.add_artist(line)
            name = language.say("figure.kv.head", n=start // group)
            where = {"ha": "center", "va": "bottom", "fontsize": 7, "color": "#666666"}
            figure.text((left + right) / 2, high, name, in_layout=False, **where)


def _lines(start: int, stop: int, columns: int) -> list[tuple[int, int]]:
    """The first and last panel of a group on each row of the grid."""
    found = []
    while start < stop:
        end = min(stop, (start // columns + 1) * columns)
        found.append((start, end - 1))
        start = end
    return found
