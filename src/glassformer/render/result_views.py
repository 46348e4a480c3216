"""The functions behind `figure` and `page` of what analysis has found.

Their language is set by GLASSFORMER_LANG or the locale.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from glassformer.analysis import Attribution, Comparison, Lens, Role, Sweep, Why
from glassformer.languages import Language, detect
from glassformer.render.chart import Cells, Chart
from glassformer.render.charts.attribution import chart_of_attribution
from glassformer.render.charts.change import chart_of_change
from glassformer.render.charts.lens import chart_of_lens
from glassformer.render.charts.sweep import chart_of_sweep
from glassformer.render.charts.why import tree_of_why
from glassformer.render.figure.cells import has_room_for_texts
from glassformer.render.figure.chart import check_chart_file, figure_language, write_chart
from glassformer.render.figure.tree import write_tree
from glassformer.render.page.chart_document import draw_chart_page
from glassformer.render.page.tree_document import draw_tree_page
from glassformer.render.paragraph import join_sentences
from glassformer.render.tree import Tree

Draw = Callable[[Language], Chart]
DrawTree = Callable[[Language], Tree]


def lens_figure(lens: Lens, path: str | Path, **options: Any) -> None:
    """Write the lens grid as PNG, SVG or PDF."""
    write_figure(partial(chart_of_lens, lens, **options), path)


def attribution_figure(found: Attribution, path: str | Path, **options: Any) -> None:
    """Write contribution bars as PNG, SVG or PDF."""
    write_figure(partial(chart_of_attribution, found, **options), path)


def sweep_figure(found: Sweep, path: str | Path, *, roles: Iterable[Role] = ()) -> None:
    """Write the map of effects as PNG, SVG or PDF."""
    write_figure(partial(chart_of_sweep, found, roles=list(roles)), path)


def change_figure(found: Comparison, path: str | Path, **options: Any) -> None:
    """Write what changed between two runs as PNG, SVG or PDF."""
    write_figure(partial(chart_of_change, found, **options), path)


def why_figure(found: Why, path: str | Path) -> None:
    """Write the tree of reasons as PNG, SVG or PDF."""
    write_tree_figure(partial(tree_of_why, found), path)


def lens_page(lens: Lens, path: str | Path, **options: Any) -> None:
    """Write the lens grid as a page."""
    write_page(partial(chart_of_lens, lens, **options), path)


def attribution_page(found: Attribution, path: str | Path, **options: Any) -> None:
    """Write contribution bars as a page."""
    write_page(partial(chart_of_attribution, found, **options), path)


def sweep_page(found: Sweep, path: str | Path, *, roles: Iterable[Role] = ()) -> None:
    """Write the map of effects as a page."""
    write_page(partial(chart_of_sweep, found, roles=list(roles)), path)


def change_page(found: Comparison, path: str | Path, **options: Any) -> None:
    """Write what changed between two runs as a page."""
    write_page(partial(chart_of_change, found, **options), path)


def why_page(found: Why, path: str | Path) -> None:
    """Write the tree of reasons as a page."""
    write_tree_page(partial(tree_of_why, found), path)


def write_page(draw: Draw, path: str | Path, language: Language | None = None) -> None:
    """Write a chart as a page that opens in the language asked for."""
    draw_chart_page(draw, path, language=language or detect(os.environ))


def write_figure(draw: Draw, path: str | Path, language: Language | None = None) -> None:
    """Write a chart in the language asked for; English where no font has Chinese characters."""
    check_chart_file(path)
    language = figure_language(language or detect(os.environ))
    chart = draw(language)
    caption = chart.caption
    if any(isinstance(p, Cells) and p.texts and not has_room_for_texts(p) for p in chart.panels):
        caption = join_sentences([caption, language.say("chart.crowded")], language)
    write_chart(chart, path, title=chart.title, caption=caption)


def write_tree_figure(draw: DrawTree, path: str | Path, language: Language | None = None) -> None:
    """Write a tree in the language asked for; English where no font has Chinese characters."""
    check_chart_file(path)
    language = figure_language(language or detect(os.environ))
    write_tree(draw(language), path, language)


def write_tree_page(draw: DrawTree, path: str | Path, language: Language | None = None) -> None:
    """Write a tree as a page that opens in the language asked for."""
    draw_tree_page(draw, path, language=language or detect(os.environ))
