"""Figures of the chapters that can be changed: the components of the workbench, without a server.

What Python drew is shown at once, and without scripts; the script puts the live figure there.
"""

import json
from importlib.resources import files
from typing import Any

from glassformer.languages import Language
from glassformer.school.learn.picture import Album, Choices, Flow, Merges, Picture, Row, Steps
from glassformer.school.learn.plain_blocks import plain_picture
from glassformer.school.learn.timeline import Timeline

SCRIPT = '<script defer src="../_static/figures/figures.js"></script>'
_TEXTS = (
    "page.key.of",
    "bench.learn.album",
    "bench.learn.choices.kept",
    "bench.learn.choices.reset",
    "bench.learn.choices.temperature",
    "bench.learn.merges.counts",
    "bench.learn.merges.learned",
    "bench.learn.merges.number",
    "bench.learn.merges.reset",
    "bench.learn.merges.text",
    "bench.learn.steps.edit",
    "bench.learn.steps.reset",
    "bench.learn.weight",
    "bench.steps.next",
    "bench.steps.pause",
    "bench.steps.play",
    "bench.steps.previous",
)


def is_live(picture: Picture) -> bool:
    """Whether there is something to change or to play in a picture."""
    if isinstance(picture, Row):
        return any(is_live(each) for each in picture.pictures)
    if isinstance(picture, Album) and isinstance(picture.pictures[0][1], Timeline):
        return False  # the drawn list links to the site's pages, the workbench's to its own
    return isinstance(picture, Album | Choices | Flow | Merges | Steps)


def live_markup(picture: Picture, drawn: str, language: Language) -> str:
    """The picture as it is drawn, with its numbers for the script."""
    file = files("glassformer.languages").joinpath(f"{language.code}.json")
    catalogue = json.loads(file.read_text("utf-8"))
    content: dict[str, Any] = {
        "language": language.code,
        "texts": {key: catalogue[key] for key in _TEXTS},
        "picture": plain_picture(picture),
    }
    data = json.dumps(content, ensure_ascii=False).replace("</", "<\\/")
    return (
        f'<div class="live"><div>{drawn}</div><script type="application/json">{data}</script></div>'
    )
