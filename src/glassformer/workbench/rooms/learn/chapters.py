"""Chapters: their blocks as plain values, places in other rooms, and that one was read."""

import tomllib
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from glassformer.languages import Language
from glassformer.school.learn.chapters import chapter_names, read_chapter
from glassformer.school.learn.plain_blocks import plain_block, plain_line
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.records import open_learning, save_progress
from glassformer.workbench.wire.learn import PartRequest

_PATH = ("to", "site", "head")  # what a place may leave open


def describe_chapter(asked: PartRequest, _memory: Memory, progress: Progress) -> dict[str, Any]:
    """A chapter, block by block; its pictures are computed now."""
    language = Language(asked.lang)
    chapter = read_chapter(asked.name, language)
    blocks = []
    for n, block in enumerate(chapter.blocks):
        progress(n / len(chapter.blocks))
        blocks.append(plain_block(block, language))
    names = chapter_names()
    place = names.index(chapter.name)
    return {
        "number": chapter.number,
        "name": chapter.name,
        "title": plain_line(chapter.title),
        "blocks": blocks,
        "places": [_describe_place(each, asked.lang) for each in read_places().get(asked.name, [])],
        "previous": names[place - 1] if place else None,
        "next": names[place + 1] if place + 1 < len(names) else None,
    }


def mark_read(asked: PartRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """Remember that a chapter was read; the first day counts."""
    language = Language(asked.lang)
    chapter = read_chapter(asked.name, language)
    learning = open_learning(language)
    if chapter.name not in learning.read:
        learning.mark_read(chapter.name, date.today())
        save_progress(learning, language)
    return {"read": learning.read[chapter.name]}


@cache
def read_places() -> dict[str, list[dict[str, Any]]]:
    """Places in other rooms, by chapter, as course/places.toml has them."""
    file = files("glassformer.course").joinpath("places.toml")
    return tomllib.loads(file.read_text("utf-8"))


def _describe_place(place: dict[str, Any], code: str) -> dict[str, Any]:
    path = {name: place.get(name) for name in _PATH}
    fixed = {name: place[name] for name in ("room", "model", "sentence")}
    return {"says": place[code], **fixed, **path}
