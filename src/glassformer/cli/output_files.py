"""The options --png, --svg, --pdf and --html of commands that draw what they found."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from glassformer.cli.progress import progress_bar
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.paths import user_path

if TYPE_CHECKING:
    from glassformer.render.chart import Chart
    from glassformer.render.tree import Tree


def file_options(language: Language) -> dict[str, Any]:
    """The options that name a file for a figure or a page, by name."""
    say = language.say
    texts = {
        "png": say("lab.png"),
        "svg": say("lab.svg"),
        "pdf": say("figure.pdf"),
        "html": say("figure.html"),
    }
    return {
        name: typer.Option(f"--{name}", metavar="FILE", help=text) for name, text in texts.items()
    }


def check_files(files: dict[str, str | None], language: Language) -> None:
    """Reject wrong suffixes and missing folders, by suffix, before anything is computed."""
    for suffix, path in files.items():
        if path is not None and Path(path).suffix != suffix:
            raise TraceError(language.say("look.error.suffix", suffix=suffix, got=repr(path)))
    check_folders(list(files.values()), language)


def check_folders(paths: list[str | None], language: Language) -> None:
    """Reject files whose folder is missing."""
    for path in paths:
        if path is not None and not user_path(path).parent.is_dir():
            raise TraceError(language.say("look.error.folder", folder=user_path(path).parent))


def write_files(
    draw: Callable[[Language], "Chart"], files: dict[str, str | None], language: Language
) -> None:
    """Write the figures and the page of a chart that were asked for."""
    # Imported here: help screens and usage errors must not load torch.
    from glassformer.render.result_views import write_figure, write_page

    _write(write_figure, write_page, draw, files, language)


def write_tree_files(
    draw: Callable[[Language], "Tree"], files: dict[str, str | None], language: Language
) -> None:
    """Write the figures and the page of a tree that were asked for."""
    from glassformer.render.result_views import write_tree_figure, write_tree_page

    _write(write_tree_figure, write_tree_page, draw, files, language)


def _write(
    write_figure: Callable[..., None],
    write_page: Callable[..., None],
    draw: Callable[[Language], Any],
    files: dict[str, str | None],
    language: Language,
) -> None:
    asked = {suffix: path for suffix, path in files.items() if path is not None}
    if not asked:
        return
    with progress_bar(language.say("look.drawing"), total=None):
        for suffix, path in asked.items():
            write = write_page if suffix == ".html" else write_figure
            write(draw, user_path(path), language)
