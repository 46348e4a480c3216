"""Figure files: the style that matplotlib draws in, and how a figure is written."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glassformer.errors import GlassformerError
from glassformer.installation import install_command
from glassformer.render.figure.fonts import add_fallback_fonts, font_families
from glassformer.render.signature import FIGURE, figure_metadata
from glassformer.storage import atomic_file

SUFFIXES = (".png", ".svg", ".pdf")


def check_suffix(path: Path, error: type[GlassformerError]) -> None:
    """Reject a file that is neither PNG nor SVG nor PDF."""
    if path.suffix not in SUFFIXES:
        raise error(f"A figure must be a .png, .svg or .pdf file; got {path.name!r}.")


@contextlib.contextmanager
def figure_style(error: type[GlassformerError]) -> Iterator[None]:
    """Matplotlib with our fonts, or a sentence that says how to install it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise error(
            "Figures need the package matplotlib; it is not installed. "
            f"Run: {install_command('figures')}"
        ) from None
    # Text remains text: it can be searched, copied and read aloud. A PDF embeds its fonts.
    with mpl.rc_context(
        {"font.family": font_families(), "svg.fonttype": "none", "pdf.fonttype": 3}
    ):
        yield


def save_figure(figure: Any, path: Path, error: type[GlassformerError], *, dpi: int) -> None:
    """Write a figure atomically, in the format that its suffix names."""
    form = path.suffix[1:]
    title = figure.get_suptitle().replace("\n", " ")
    described = figure_metadata(form) | ({"Title": title} if form in ("svg", "pdf") else {})
    with atomic_file(path, error, mark=FIGURE) as unfinished:
        figure.savefig(unfinished, format=form, dpi=dpi, bbox_inches="tight", metadata=described)
        if form == "svg":
            svg = add_fallback_fonts(unfinished.read_text("utf-8"))
            unfinished.write_text(svg, "utf-8")
