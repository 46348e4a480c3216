"""Charts in the terminal: points on a grid, bars and shades, all readable without colour."""

import itertools
import math
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.chart import Axis, Bars, Chart, Lines, Number, Series, axis_limits
from glassformer.render.numbers import format_brief
from glassformer.render.paragraph import Paragraph, wrap_text
from glassformer.render.terminal.cells import draw_cells

SIGNS = "●○▲△■□◆◇"
_BETWEEN, _SEVERAL = "·", "*"  # between two points; points of several series
_HEIGHT = 13
_FEW_NAMES = 8  # up to which bars are separated by blank lines
_LEAST_BAR = 12  # cells of the longest bar


def draw_chart(chart: Chart, *, width: int, language: Language) -> RenderableType:
    """Draw all panels, one below the other, with their numbers."""
    parts: list[RenderableType] = []
    for panel in chart.panels:
        parts += ["", Text(panel.title, style="bold")] if panel.title else [""]
        if isinstance(panel, Lines):
            parts += _lines(panel, width, language)
        elif isinstance(panel, Bars):
            parts += _bars(panel, width)
        else:
            parts += draw_cells(panel, width, language)
    return Group(*parts[1:])


def ticks(axis: Axis, low: Number, high: Number, most: int = 5) -> list[Number]:
    """Round numbers along an axis.

    >>> ticks(Axis(label="", log=True), 3, 5000)
    [10.0, 100.0, 1000.0]
    >>> ticks(Axis(label=""), 0, 0.9)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    if axis.log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if last > first:
            step = math.ceil((last - first + 1) / most)
            return [10.0**e for e in range(first, last + 1, step)]
        return [low, high]
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(s for s in (1, 2, 5, 10) if s * unit >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _cell_at(value: Number, axis: Axis, low: Number, high: Number, cells: int) -> int | None:
    """The cell of a number on an axis of `cells` cells; None if it is out of range."""
    if axis.log:
        if value <= 0:
            return None
        value, low, high = math.log(value), math.log(low), math.log(high)
    share = (value - low) / (high - low)
    return round(share * (cells - 1)) if -1e-9 <= share <= 1 + 1e-9 else None


def _lines(panel: Lines, width: int, language: Language) -> Iterator[RenderableType]:
    measured = [v for s in panel.series for v in s.values if v is not None and math.isfinite(v)]
    across = [m.at for m in panel.marks if m.side == "y"]
    low, high = axis_limits(panel.y, measured + across)
    left, right = axis_limits(panel.x, list(panel.places))
    labels = {
        _cell_at(t, panel.y, low, high, _HEIGHT): format_brief(t) for t in ticks(panel.y, low, high)
    }
    side = max((len(label) for label in labels.values()), default=0)
    columns = min(width - side - 3, 72)
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    for mark in panel.marks:
        _draw_mark(grid, panel, mark.side, mark.at, (left, right, low, high))
    points: dict[tuple[int, int], set[int]] = {}
    for i, series in enumerate(panel.series):
        found = [
            (_cell_at(x, panel.x, left, right, columns), _cell_at(y, panel.y, low, high, _HEIGHT))
            for x, y in zip(panel.places, series.values, strict=True)
            if y is not None
        ]
        here = [(column, row) for column, row in found if column is not None and row is not None]
        _connect(grid, here)
        for column, row in here:
            points.setdefault((row, column), set()).add(i)
    for (row, column), some in points.items():
        grid[row][column] = SIGNS[min(some)] if len(some) == 1 else _SEVERAL
    yield Text(panel.y.label, style="dim")
    for row in reversed(range(_HEIGHT)):
        label = labels.get(row, "")
        edge = "┤" if label else "│"
        yield Text(f"{label:>{side}} {edge}{''.join(grid[row])}".rstrip(), no_wrap=True)
    for line in _draw_axis(panel, left, right, columns):
        yield Text(" " * (side + 1) + line, no_wrap=True, overflow="ignore")
    yield from _legend(panel, any(len(some) > 1 for some in points.values()), language)
    yield ""
    yield from _table(panel, width)


def _draw_mark(
    grid: list[list[str]], panel: Lines, side: str, at: Number, ends: tuple[Number, ...]
) -> None:
    left, right, low, high = ends
    if side == "y":
        row = _cell_at(at, panel.y, low, high, len(grid))
        if row is not None:
            grid[row] = ["╌"] * len(grid[row])
        return
    column = _cell_at(at, panel.x, left, right, len(grid[0]))
    if column is not None:
        for line in grid:
            line[column] = "┊"


def _connect(grid: list[list[str]], points: list[tuple[int, int]]) -> None:
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        steps = max(abs(x1 - x0), abs(y1 - y0))
        for i in range(1, steps):
            column, row = round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps)
            grid[row][column] = _BETWEEN


def _draw_axis(panel: Lines, left: Number, right: Number, columns: int) -> list[str]:
    """The horizontal axis with its numbers and its label."""
    edge, names = ["─"] * columns, [" "] * (columns + 8)
    exact = panel.places if len(panel.places) <= 10 else ticks(panel.x, left, right)
    last = -2
    for tick in exact:
        column = _cell_at(tick, panel.x, left, right, columns)
        if column is None:
            continue
        edge[column] = "┴"
        label = format_brief(tick)
        start = max(0, column - len(label) // 2)
        if start > last + 1:
            names[start : start + len(label)] = label
            last = start + len(label) - 1
    return [f"└{''.join(edge)}", f" {''.join(names).rstrip()}", f" {panel.x.label}"]


def _legend(panel: Lines, crowded: bool, language: Language) -> Iterator[RenderableType]:
    if len(panel.series) > 1:
        for sign, series in zip(SIGNS, panel.series, strict=False):
            yield Paragraph(f"{sign} {series.name}")
    if crowded:
        yield Paragraph(f"{_SEVERAL} {language.say('lab.several')}")
    for mark in panel.marks:
        yield Paragraph(f"{'╌' if mark.side == 'y' else '┊'} {mark.name} ({format_brief(mark.at)})")


def _table(panel: Lines, width: int) -> Iterator[RenderableType]:
    """The numbers as a table, with at most twelve rows; below means, the range of the runs."""
    n = len(panel.places)
    rows = sorted({round(i * (n - 1) / 11) for i in range(12)}) if n > 12 else range(n)
    heads = [panel.x.label, *(s.name for s in panel.series)]
    cells = []
    for i in rows:
        cells.append([format_brief(panel.places[i]), *(_number(s, i) for s in panel.series)])
        ranges = [_range(s, i) for s in panel.series]
        if any(ranges):
            cells.append(["", *ranges])
    room = max(9, (width - 2 * len(heads)) // len(heads))
    titles = [wrap_text(head, room) for head in heads]
    height = max(map(len, titles))
    lines = [[t[i] if i < len(t) else "" for t in titles] for i in range(height)]
    widths = [max(cell_len(line[i]) for line in lines + cells) for i in range(len(heads))]
    for k, line in enumerate(lines + cells):
        shown = "  ".join(
            " " * (wide - cell_len(word)) + word for word, wide in zip(line, widths, strict=True)
        )
        is_quiet = k < height or line[0] == ""
        yield Text(shown, style="dim" if is_quiet else "", no_wrap=True, overflow="ignore")


def _number(series: Series, i: int) -> str:
    value = series.values[i]
    return "–" if value is None else format_brief(value)


def _range(series: Series, i: int) -> str:
    """The least and the most of several runs; nothing where they are one number."""
    if not series.low or series.low[i] is None or series.high[i] is None:
        return ""
    low, high = format_brief(series.low[i]), format_brief(series.high[i])  # type: ignore[arg-type]
    return "" if low == high else f"{low}–{high}"


def _label(series: Series, i: int) -> str:
    """A number, and in brackets its range."""
    found = _range(series, i)
    return f"{_number(series, i)} ({found})" if found else _number(series, i)


def _bars(panel: Bars, width: int) -> Iterator[RenderableType]:
    values = [v for s in panel.series for v in s.values if v is not None and math.isfinite(v)]
    axis = panel.y if panel.y.log else Axis(label="", least=min(0.0, *values, 0.0))
    low, high = axis_limits(axis, values)
    if panel.y.log:
        low /= 2  # so that the smallest bar is visible
    several = len(panel.series) > 1
    side = min(max(map(cell_len, panel.names), default=0), width // 3)
    labels = [_label(s, i) for s in panel.series for i in range(len(s.values))]
    digits = max(map(len, labels), default=1)
    room = max(_LEAST_BAR, min(48, width - side - digits - (6 if several else 4)))
    yield Text(panel.y.label, style="dim")
    for i, name in enumerate(panel.names):
        for j, (sign, series) in enumerate(zip(SIGNS, panel.series, strict=False)):
            label = _truncate(name, side) if j == 0 else " " * side
            value = series.values[i]
            mark = f" {sign}" if several else ""
            line = Text(f"{label}{mark}  ", no_wrap=True, overflow="ignore")
            if value is None:
                line.append("–")
            else:
                if panel.is_signed:  # as long as the number is large, for or against
                    share = abs(value) / max(map(abs, values)) if value else 0.0
                    line.append(
                        _blocks(round(8 * room * share)), style=_sign_style(panel, i, value)
                    )
                else:
                    within = min(max(value, low), high)
                    length = _cell_at(within, axis, low, high, 8 * room + 1) or 0
                    line.append(_blocks(length), style="cyan")
                line.append(f" {_label(series, i)}")
            yield line
        if several and i + 1 < len(panel.names) <= _FEW_NAMES:
            yield ""
    if several:
        yield ""
        for sign, series in zip(SIGNS, panel.series, strict=False):
            yield Paragraph(f"{sign} {series.name}")
    for mark in panel.marks:
        yield Paragraph(f"{mark.name}: {format_brief(mark.at)}")


def _sign_style(panel: Bars, i: int, value: Number) -> str:
    if i >= len(panel.names) - panel.n_rest:
        return "dim"
    return "cyan" if value > 0 else "red"


def _blocks(eighths: int) -> str:
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def _truncate(name: str, cells: int) -> str:
    if cell_len(name) > cells:
        name = set_cell_size(name, cells - 1).rstrip() + "…"
    return name + " " * (cells - cell_len(name))
