"""How the field got here: works in the order of their years, each with its problem and chapter.

Years, authors and addresses are those of the reading list, so that nothing is dated twice.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.school.learn.blocks import Table, plain_text
from glassformer.school.learn.chapters import read_chapter

_YEAR = re.compile(r"(?:19|20)\d\d")
_ARXIV = re.compile(r"arxiv\.org/abs/(\d\d)\d\d\.")


@dataclass(frozen=True, slots=True)
class Event:
    """A work: the problem, its answer to it, and the chapter that has the idea."""

    year: int
    problem: str
    answer: str
    work: str  # authors and year, as they are cited
    address: str
    chapter: str
    title: str  # of the chapter, with its number


@dataclass(frozen=True, slots=True)
class Timeline:
    """Works of one line of problems, oldest first."""

    events: tuple[Event, ...]
    title: str = ""


def read_timelines(language: Language) -> tuple[Timeline, ...]:
    """The lines of problems, each in the order of its years.

    >>> [event.year for event in read_timelines(Language("en"))[1].events][:3]
    [1993, 2014, 2014]
    """
    code, works = language.code, _read_works(language.code)
    file = files("glassformer.course").joinpath("timeline.toml")
    return tuple(
        Timeline(
            tuple(
                sorted(
                    (_read_event(entry, works, language) for entry in line["entry"]),
                    key=lambda event: event.year,
                )
            ),
            line[code],
        )
        for line in tomllib.loads(file.read_text("utf-8"))["line"]
    )


def _read_event(
    entry: dict[str, Any], works: dict[str, tuple[str, str]], language: Language
) -> Event:
    work, address = works[entry["work"]]
    chapter = read_chapter(entry["chapter"], language)
    return Event(
        find_year(work, address),
        entry["problem"][language.code],
        entry["answer"][language.code],
        work,
        address,
        chapter.name,
        f"{chapter.number}. {plain_text(chapter.title)}",
    )


def find_year(work: str, address: str) -> int:
    """When a work was first on arXiv, or else the year by which it is cited.

    >>> find_year("Bahdanau, Cho and Bengio 2015", "https://arxiv.org/abs/1409.0473")
    2014
    """
    if found := _ARXIV.search(address):
        return 2000 + int(found[1])
    cited = _YEAR.search(work)
    assert cited is not None
    return int(cited[0])


@cache
def _read_works(code: str) -> dict[str, tuple[str, str]]:
    """Of each work in the reading list how it is cited, and its address; by first author and year.

    Authors are those of the English list: both have the same works in the same order.
    """
    keys, shown = [_read_list(each) for each in ("en", code)]
    return {
        f"{work.split()[0].strip(',')} {_YEAR.findall(work)[0]}": (said, address)
        for (work, _), (said, address) in zip(keys, shown, strict=True)
    }


def _read_list(code: str) -> list[tuple[str, str]]:
    blocks = read_chapter("mastery", Language(code)).blocks
    rows = [block for block in blocks if isinstance(block, Table)][-1].rows
    return [(plain_text(row[0][:1]).rstrip(" ,，"), row[0][1].target) for row in rows]


def plain_timeline(picture: Timeline) -> dict[str, Any]:
    """The events as plain values."""
    events = [
        {
            "year": event.year,
            "problem": event.problem,
            "answer": event.answer,
            "work": event.work,
            "address": event.address,
            "chapter": event.chapter,
            "title": event.title,
        }
        for event in picture.events
    ]
    return {"kind": "timeline", "events": events}


def timeline_markup(picture: Timeline) -> str:
    """A list for the book, with links to the work and to the chapter."""
    items = "".join(
        f"<li><b>{event.year}</b> {escape(event.problem)}<br>→ {escape(event.answer)}<br>"
        f'<a href="{escape(event.address)}">{escape(event.work)}</a> · '
        f'<a href="#{escape(event.chapter)}">{escape(event.title)}</a></li>'
        for event in picture.events
    )
    return f'<ol class="timeline">{items}</ol>'


def draw_timeline(picture: Timeline) -> RenderableType:
    """The events in the terminal: the year, then problem, answer, work and chapter."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for event in picture.events:
        work = Text(event.work, style=f"dim link {event.address}")
        lines = Group(
            Paragraph(event.problem),
            Paragraph(f"→ {event.answer}", style="cyan"),
            work,
            Paragraph(f"{event.title}  (glassformer learn {event.chapter})", style="dim"),
        )
        grid.add_row(Text(str(event.year), style="bold"), lines)
    return grid
