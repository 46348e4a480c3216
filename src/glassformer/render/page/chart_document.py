"""A chart as a single HTML file: grids whose cells tell their numbers, and bars.

The page holds the chart in one language, and of every other language only what differs.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from glassformer.errors import TraceError
from glassformer.languages import CODES, Language
from glassformer.render.chart import Cells, Chart
from glassformer.render.page.template import check_page, fill_template, write_html
from glassformer.render.page.texts import CHART_KEYS, page_texts

MOST_CELLS = 40_000  # of a grid: megabytes of tokens and numbers


def draw_chart_page(
    draw: Callable[[Language], Chart], path: str | Path, *, language: Language
) -> None:
    """Write the page atomically; it opens in this language, and the reader can switch."""
    check_page(Path(path))
    write_html(chart_html(draw, language), Path(path))


def chart_html(draw: Callable[[Language], Chart], language: Language) -> str:
    """The page as text; `draw` makes the chart in each language."""
    chart = draw(language)
    _check_size(chart)
    plain = _as_dict(chart)
    others = {
        code: _select_different(_as_dict(draw(Language(code))), plain)
        for code in CODES
        if code != language.code
    }
    data = {
        "kind": "chart",
        "language": language.code,
        "languages": page_texts(CHART_KEYS),
        "chart": plain,
        "others": others,
    }
    title = " · ".join(filter(None, (chart.title, chart.panels[0].title, "glassformer")))
    return fill_template(title, data)


def _as_dict(chart: Chart) -> dict[str, Any]:
    return {"title": chart.title, "caption": chart.caption, **chart.as_dict()}


def _select_different(other: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    """The chart in another language without the fields of its panels that are the same."""
    pairs = zip(other["panels"], plain["panels"], strict=True)
    panels = [{name: a[name] for name in a if a[name] != b[name]} for a, b in pairs]
    return {**other, "panels": panels}


def _check_size(chart: Chart) -> None:
    for panel in chart.panels:
        if not isinstance(panel, Cells):
            continue
        rows, columns = len(panel.values), len(panel.values[0])
        if rows * columns > MOST_CELLS:
            raise TraceError(
                f"A page shows grids of up to {MOST_CELLS:,} cells; got {rows} × {columns} = "
                f"{rows * columns:,}. Select positions or a shorter text, or draw a figure."
            )
