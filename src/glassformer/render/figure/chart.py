"""Charts as PNG, SVG or PDF files, with panels side by side."""

import math
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.chart import Bars, Cells, Chart, Lines, Panel, Series
from glassformer.render.figure.cells import NEGATIVE, POSITIVE, REST, cells_size, draw_cells
from glassformer.render.figure.files import check_suffix, figure_style, save_figure
from glassformer.render.figure.fonts import has_chinese, make_drawable
from glassformer.render.numbers import format_brief
from glassformer.render.paragraph import wrap_text

_SIGNS = "o^sDvPX*"
_WIDTH, _HEIGHT = 6.0, 4.2  # inches of a panel
_INCHES_PER_CELL = 0.1
_INCHES_PER_BAR = 0.22
_MOST_CAPTION = 180  # cells of a caption line
_MOST_NUMBERED = 12  # places up to which each is numbered
_MOST_BESIDE = 28  # numbers that fit side by side on an axis


def check_chart_file(path: str | Path) -> None:
    """Raise if a figure cannot be written there, before anything is measured for it."""
    path = Path(path)
    check_suffix(path, ConfigError)
    if path.is_dir():
        raise ConfigError(f"A figure must be a file; {path} is a folder. Choose another name.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(
            f"The folder of a figure must exist; {path.parent} does not. Create it first."
        )
    with figure_style(ConfigError):
        pass


def write_chart(chart: Chart, path: str | Path, *, title: str, caption: str) -> None:
    """Write all panels with a title and a caption, atomically."""
    with figure_style(ConfigError):
        from matplotlib.figure import Figure  # without pyplot, which would keep a reference

        sizes = [_size(panel) for panel in chart.panels]
        width = sum(size[0] for size in sizes)
        height = max(size[1] for size in sizes)
        figure = Figure(figsize=(width, height), layout="constrained")
        shares = {"width_ratios": [size[0] for size in sizes]}
        grid = figure.subplots(1, len(sizes), squeeze=False, gridspec_kw=shares)[0]
        for axes, panel in zip(grid, chart.panels, strict=True):
            _draw(axes, panel)
        cells = int(width / _INCHES_PER_CELL)
        figure.suptitle("\n".join(map(_plain, wrap_text(title, cells))), fontsize=12)
        small_print = "\n".join(
            map(_plain, wrap_text(caption, min(int(cells * 1.3), _MOST_CAPTION)))
        )
        figure.supxlabel(small_print, fontsize=8, color="#555555", x=0.01, ha="left")
        save_figure(figure, Path(path), ConfigError, dpi=140)


def figure_language(language: Language) -> Language:
    """The language of a figure: English if no installed font has Chinese characters."""
    with figure_style(ConfigError):
        return language if has_chinese() else Language("en")


def _draw(axes: Any, panel: Panel) -> None:
    axes.set_title("\n".join(map(_plain, wrap_text(panel.title, 56))), fontsize=10)
    if isinstance(panel, Lines):
        _lines(axes, panel)
    elif isinstance(panel, Bars):
        _bars(axes, panel)
    else:
        draw_cells(axes, panel)


def _size(panel: Panel) -> tuple[float, float]:
    """The width and height of a panel, in inches."""
    if isinstance(panel, Cells):
        return cells_size(panel)
    n_bars = len(panel.names) * len(panel.series) if isinstance(panel, Bars) else 0
    return _WIDTH, max(_HEIGHT, _INCHES_PER_BAR * n_bars + 1.2 * (n_bars > 0))


def _lines(axes: Any, panel: Lines) -> None:
    for i, (sign, series) in enumerate(zip(_SIGNS, panel.series, strict=False)):
        pairs = [
            (x, y)
            for x, y in zip(panel.places, series.values, strict=True)
            if y is not None and not (panel.y.log and y <= 0)
        ]
        few = sign if len(panel.places) <= 40 else ""
        # Each marker is smaller than the last, so that coinciding points remain visible.
        size = {"ms": max(3.0, 9 - 1.5 * i), "lw": max(0.8, 2.2 - 0.3 * i)}
        (line,) = axes.plot(
            *zip(*pairs, strict=True), marker=few, label=_plain(series.name), **size
        )
        _shade_range(axes, panel, series, line.get_color())
    for i, mark in enumerate(panel.marks):
        line = axes.axhline if mark.side == "y" else axes.axvline
        style = ("--", ":", "-.")[i % 3]
        line(mark.at, color="#888888", ls=style, lw=1, label=_plain(mark.name))
    _scale(axes, panel)
    if len(panel.series) + len(panel.marks) > 1:
        axes.legend(framealpha=0.85, edgecolor="none", fontsize=8)


def _shade_range(axes: Any, panel: Lines, series: Series, colour: Any) -> None:
    """From the least to the most of several runs."""
    known = [
        (x, low, high)
        for x, low, high in zip(panel.places, series.low, series.high, strict=False)
        if low is not None and high is not None and not (panel.y.log and low <= 0)
    ]
    if known:
        axes.fill_between(*zip(*known, strict=True), color=colour, alpha=0.15, lw=0)


def _scale(axes: Any, panel: Lines) -> None:
    if panel.x.log:
        axes.set_xscale("log", base=2)
        _number(axes.xaxis, base=2)
    if panel.y.log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        _number(axes.yaxis, subs=(1, 2, 5) if high / low < 1000 else (1,))
    if len(panel.places) <= _MOST_NUMBERED:
        axes.set_xticks(panel.places, _space_labels(panel), fontsize=8)
        axes.set_xticks([], minor=True)
    for axis, limits in ((panel.x, axes.set_xlim), (panel.y, axes.set_ylim)):
        low, high = axis.least, axis.most
        room = 0.03 * (high - low) if low is not None and high is not None else 0.0
        limits(
            low if low is None or axis.log else low - room,
            high if high is None or axis.log else high + room,
        )
    axes.set_xlabel(_plain(panel.x.label))
    axes.set_ylabel(_plain(panel.y.label))
    axes.grid(alpha=0.25)


def _space_labels(panel: Lines) -> list[str]:
    """The tick labels; one that would overlap its neighbour is empty."""
    at = [math.log(x) if panel.x.log else float(x) for x in panel.places]
    step = max((at[-1] - at[0]) / _MOST_BESIDE, 1e-12)
    kept, labels = -math.inf, []
    for x, place in zip(at, panel.places, strict=True):
        is_free = x - kept >= step
        kept = x if is_free else kept
        labels.append(format_brief(place) if is_free else "")
    return labels


def _number(axis: Any, **ticks: Any) -> None:
    """Label a logarithmic axis with plain numbers instead of powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(**ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_brief(value)))
    axis.set_minor_formatter(NullFormatter())


def _bars(axes: Any, panel: Bars) -> None:
    n, thick = len(panel.series), 0.8 / len(panel.series)
    for j, series in enumerate(panel.series):
        places = [i + (j - (n - 1) / 2) * thick for i in range(len(panel.names))]
        values = [0.0 if v is None else v for v in series.values]
        name = _plain(series.name) if n > 1 else None  # a single series is named by the axis
        colours = {"color": _sign_colours(panel, values)} if panel.is_signed and n == 1 else {}
        # Given with the bars, ranges keep the labels clear of their ends.
        ranges = _bar_ranges(series, values)
        drawn = axes.barh(places, values, height=thick * 0.92, label=name, **colours, **ranges)
        labels = [" –" if v is None else f" {format_brief(v)}" for v in series.values]
        axes.bar_label(drawn, labels, fontsize=7)
    axes.set_yticks(range(len(panel.names)), make_drawable(panel.names, most=40), fontsize=8)
    for i, mark in enumerate(panel.marks):
        axes.axvline(mark.at, color="#888888", ls=("--", ":")[i % 2], lw=1, label=_plain(mark.name))
    if panel.is_signed:
        axes.axvline(0, color="#555555", lw=0.8)
    if panel.y.log:
        axes.set_xscale("log")
    axes.margins(x=0.18)
    axes.set_ylim(len(panel.names) - 0.4, -0.6)  # the first name on top, no empty rows
    axes.set_xlabel(_plain(panel.y.label))
    if n > 1 or panel.marks:  # below the axes: bars leave no room
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 3}
        axes.legend(frameon=False, fontsize=8, **below)


def _bar_ranges(series: Series, values: list[float | int]) -> dict[str, Any]:
    """How far below and above its mean each bar reaches in several runs."""
    if not series.low:
        return {}
    ends = list(zip(values, series.low, series.high, strict=True))
    below = [0.0 if low is None else mean - low for mean, low, _ in ends]
    above = [0.0 if high is None else high - mean for mean, _, high in ends]
    return {"xerr": [below, above], "error_kw": {"ecolor": "#333333", "lw": 1}}


def _sign_colours(panel: Bars, values: list[float | int]) -> list[str]:
    n_parts = len(values) - panel.n_rest
    return [
        REST if i >= n_parts else POSITIVE if value >= 0 else NEGATIVE
        for i, value in enumerate(values)
    ]


def _plain(text: str) -> str:
    return make_drawable([text], most=400)[0] if text else ""
