"""The built page, filled with a title and data; web/ holds its sources."""

import html
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from glassformer.errors import TraceError
from glassformer.render.signature import PAGE
from glassformer.storage import atomic_file


def check_page(path: Path) -> None:
    """Reject a file that is not named as a page."""
    if path.suffix != ".html":
        raise TraceError(f"A page must be an .html file; got {path.name!r}.")


def write_html(text: str, path: Path) -> None:
    """Write a page atomically; only pages are overwritten."""
    with atomic_file(path, TraceError, mark=PAGE) as unfinished:
        unfinished.write_text(text, "utf-8")


def fill_template(title: str, data: Any, elements: Sequence[str] = ()) -> str:
    """The page with what it shows at once, and elements that it reads later."""
    title = title.encode("utf-8", "replace").decode()  # lone surrogates cannot be encoded
    before, between, after, end = _template()
    parts = [before, html.escape(title), between, _plain_json(data), after]
    return "".join([*parts, "\n".join(elements), end])


def data_element(name: str, data: Any) -> str:
    """Data as an element of the page."""
    return f'<script type="application/json" id="{name}">{_plain_json(data)}</script>'


def _plain_json(data: Any) -> str:
    # ASCII has no line separators, and without "<" there is no end tag and no comment.
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _template() -> tuple[str, str, str, str]:
    """The built page, split at its title, its data and its operands."""
    text = files("glassformer.render.page").joinpath("static/page.html").read_text("utf-8")
    before, rest = text.split("@@glassformer-title@@")
    between, rest = rest.split("@@glassformer-page@@")
    after, end = rest.split("@@glassformer-operands@@")
    return before, between, after, end
