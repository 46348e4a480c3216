"""A grid of numbers in a figure: colours, the names of rows and columns, texts inside the cells."""

import math
from collections.abc import Sequence
from typing import Any

from glassformer.render.chart import Cells
from glassformer.render.figure.fonts import make_drawable
from glassformer.render.numbers import format_brief

POSITIVE, NEGATIVE, REST = "#0f736e", "#b3541e", "#9a9a95"
_PAPER, _NOTHING = "#ffffff", "#e4e4e4"
_PALE_POSITIVE, _PALE_NEGATIVE = "#58a29f", "#cd8c69"  # on which black text is still readable
_MOST_TEXT = 10  # characters inside a cell
_MOST_NAME = 24  # of a row
_CHARACTER = 0.075  # inches
_MOST_WIDTH, _MOST_ROWS = 20.0, 72  # beyond these, cells carry no text
_SPACE = 0.14  # inches between the names of neighbours


def has_room_for_texts(panel: Cells) -> bool:
    """Whether the texts of a panel fit into its cells."""
    width = _cell_width(panel) * len(panel.values[0])
    return bool(panel.texts) and width <= _MOST_WIDTH and len(panel.values) <= _MOST_ROWS


def cells_size(panel: Cells) -> tuple[float, float]:
    """The width and height of a panel with its names, in inches."""
    if not panel.row_names and not panel.column_names:
        return 6.0, 4.2
    height, width = len(panel.values), len(panel.values[0])
    if has_room_for_texts(panel):
        inside = width * _cell_width(panel), max(1.5, height * 0.22)
    else:
        inside = min(10.0, max(1.2, 0.3 * width)), min(9.0, max(1.5, 0.2 * height))
    beside = _CHARACTER * min(_MOST_NAME, max(map(len, panel.row_names), default=0)) + 1.6
    below = _CHARACTER * min(20, max(map(len, panel.column_names), default=0)) + 1.4
    return inside[0] + beside, inside[1] + below


def draw_cells(axes: Any, panel: Cells) -> None:
    """Draw the cells and what their colours mean."""
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap

    has_texts = has_room_for_texts(panel)
    # Exact zeros stay white, to distinguish them from small values.
    nothing = (None,) if panel.is_signed or panel.texts else (None, 0)
    values = [[math.nan if v in nothing else v for v in row] for row in panel.values]
    largest = float(panel.largest) or 1.0
    if panel.is_signed or panel.texts:
        ends = [NEGATIVE, POSITIVE] if not has_texts else [_PALE_NEGATIVE, _PALE_POSITIVE]
        steps = [ends[0], _PAPER, ends[1]] if panel.is_signed else [_PAPER, ends[1]]
        colours = LinearSegmentedColormap.from_list("signed", steps).with_extremes(bad=_NOTHING)
    else:
        colours = mpl.colormaps["viridis"]
    is_named = bool(panel.row_names or panel.column_names)
    limits: dict[str, Any] = {}
    if panel.is_signed or is_named or panel.most is not None:
        limits = {"vmin": -largest if panel.is_signed else 0.0, "vmax": largest}
    image = axes.imshow(values, cmap=colours, aspect="auto", interpolation="nearest", **limits)
    beyond = any(abs(v) > largest * (1 + 1e-9) for row in panel.values for v in row if v)
    sides = "neither" if not beyond else "both" if panel.is_signed else "max"
    wide = {"fraction": 0.04, "pad": 0.02} if is_named else {}
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, extend=sides, **wide)
    if panel.legend:
        bar.set_label(make_drawable([panel.legend], most=80)[0], fontsize=8)
    if panel.is_signed:
        ticks = [-largest, -largest / 2, 0.0, largest / 2, largest]
        bar.set_ticks(ticks, labels=[format_brief(tick) for tick in ticks])
    if has_texts:
        _write_texts(axes, panel)
    size = cells_size(panel)
    _name_side(axes.set_xticks, panel.column_names, size[0] - 2.5, rotation=90)
    _name_side(axes.set_yticks, panel.row_names, size[1] - 1.5, rotation=0)
    axes.set_xlabel(make_drawable([panel.columns], most=80)[0] if panel.columns else "")
    axes.set_ylabel(make_drawable([panel.rows], most=80)[0] if panel.rows else "")


def _cell_width(panel: Cells) -> float:
    """The inches that a cell needs for the longest of its texts."""
    longest = max((len(text) for row in panel.texts for text in row), default=1)
    return 0.12 + _CHARACTER * max(3, min(_MOST_TEXT, longest))


def _write_texts(axes: Any, panel: Cells) -> None:
    centred = {"ha": "center", "va": "center", "fontsize": 7, "color": "#1d2125"}
    for i, row in enumerate(panel.texts):
        for j, text in enumerate(make_drawable(row, most=_MOST_TEXT)):
            axes.text(j, i, text, clip_on=True, **centred)


def _name_side(set_ticks: Any, names: Sequence[str], inches: float, *, rotation: int) -> None:
    """Name every row or column, or evenly spaced ones where not all names fit."""
    if not names:
        return
    step = max(1, math.ceil(len(names) * _SPACE / max(inches, 1.0)))
    chosen = range(0, len(names), step)
    shown = make_drawable([names[i] for i in chosen], most=_MOST_NAME)
    set_ticks(list(chosen), shown, rotation=rotation, fontsize=7)
