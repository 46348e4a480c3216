"""The functions behind `trace.show`, `figure`, `page` and notebooks, with defaults for everything.

Their language is set by GLASSFORMER_LANG or the locale.
"""

import os
from pathlib import Path

from rich.console import Console

from glassformer.languages import Language, detect
from glassformer.render.figure.drawing import draw_figure
from glassformer.render.focus import choose_focus
from glassformer.render.head_cells import Drawing, Pool, ScaleBy
from glassformer.render.page.document import draw_page
from glassformer.render.page.inline import inline_html
from glassformer.render.sampled_queries import sample_queries
from glassformer.render.terminal.picture import draw_picture
from glassformer.tracing import Trace

_LEAST_COLUMNS, _MOST_COLUMNS = 48, 100  # below the minimum, numbers would be truncated


def show(
    trace: Trace,
    *,
    site: str | None,
    head: int | None,
    sequence: int,
    pool: Pool,
    scale: ScaleBy,
    first_key: bool,
) -> None:
    """Print an overview of all heads and the picture of one."""
    console = Console(markup=False, emoji=False, highlight=False)
    console.width = max(_LEAST_COLUMNS, min(console.width, _MOST_COLUMNS))
    trace = sample_queries(trace)
    chosen, number, *_ = choose_focus(trace, site=site, head=head, sequence=sequence)
    picture = draw_picture(
        trace,
        chosen,
        number,
        width=console.width,
        drawing=Drawing(pool=pool, scale=scale, first_key=first_key),
        language=_language(),
        sequence=sequence,
    )
    console.print(picture)


def figure(
    trace: Trace,
    path: str | Path,
    *,
    kind: str,
    site: str | None,
    head: int | None,
    sequence: int,
    pool: Pool,
    scale: ScaleBy,
    first_key: bool,
) -> None:
    """Write a figure as PNG, SVG or PDF."""
    draw_figure(
        trace,
        path,
        kind=kind,
        site=site,
        head=head,
        sequence=sequence,
        drawing=Drawing(pool=pool, scale=scale, first_key=first_key),
        language=_language(),
    )


def page(trace: Trace, path: str | Path) -> None:
    """Write the HTML page."""
    draw_page(trace, path, language=_language())


def inline(trace: Trace) -> str:
    """The page as an element of a notebook."""
    return inline_html(trace, _language())


def _language() -> Language:
    return detect(os.environ)
