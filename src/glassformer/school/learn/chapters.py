"""The chapters: found by name, in the order in which they are read."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.school.learn.blocks import Block, Heading, Line, read_blocks


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter in one language."""

    number: int
    name: str
    title: Line
    blocks: tuple[Block, ...]  # below the title


def chapter_names() -> list[str]:
    """Every chapter, in order.

    >>> chapter_names()[:2]
    ['why', 'weights']
    """
    return [name for _, _, name in _files()]


def read_chapter(name: str, language: Language) -> Chapter:
    """One chapter, by its name or its number."""
    for number, file, known_name in _files():
        if name in (known_name, str(number)):
            blocks = _blocks(file, language.code)
            assert isinstance(blocks[0], Heading)
            return Chapter(number, known_name, blocks[0].line, blocks[1:])
    names = ", ".join(chapter_names())
    raise ConfigError(language.say("learn.error.name", names=names, got=repr(name)))


def read_chapters(language: Language) -> list[Chapter]:
    """All of them, in order."""
    return [read_chapter(name, language) for name in chapter_names()]


def chapter_file(name: str) -> str:
    """The name of a chapter's file.

    >>> chapter_file("masks")
    '05-masks.md'
    """
    return next(file for _, file, known_name in _files() if known_name == name)


def chapter_text(file: str, code: str) -> str:
    """A chapter as it is written."""
    return files("glassformer.course").joinpath("chapters", code, file).read_text("utf-8")


@cache
def _blocks(file: str, code: str) -> tuple[Block, ...]:
    return read_blocks(chapter_text(file, code))


@cache
def _files() -> list[tuple[int, str, str]]:
    """Number, file and name of each chapter: 05-masks.md is the chapter masks, number 5."""
    folder = files("glassformer.course").joinpath("chapters", "en")
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".md"))
    parts = (file.removesuffix(".md").partition("-") for file in found)
    return [(int(n), file, name) for file, (n, _, name) in zip(found, parts, strict=True)]
