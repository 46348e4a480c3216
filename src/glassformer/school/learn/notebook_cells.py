"""A chapter as cells of a notebook: prose as Markdown, snippets with what they print, pictures."""

import re
from dataclasses import dataclass

from glassformer.languages import Language
from glassformer.school.learn.blocks import Block, Reference, Snippet, read_line
from glassformer.school.learn.chapters import Chapter, chapter_file
from glassformer.school.learn.markdown import Dialect, block_markdown, line_markdown
from glassformer.school.learn.questions import read_questions
from glassformer.school.learn.references import TITLES, Known, format_reference


@dataclass(frozen=True, slots=True)
class Prose:
    """Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A snippet, and what it prints."""

    source: str
    printed: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture of the chapter, by its name."""

    name: str


Cell = Prose | Code | Figure


def chapter_cells(
    chapter: Chapter, dialect: Dialect, *, known: Known, language: Language, note: str
) -> list[Cell]:
    """The cells of a chapter, with a note below its title; prose between two others is one cell."""
    cells: list[Cell] = []
    waiting = [f"# {chapter.number}. {line_markdown(chapter.title, dialect)}", note]
    for block in chapter.blocks:
        cell = _code_cell(block)
        if cell is None:
            waiting.append(_markdown(block, dialect, known, language))
            continue
        if waiting:
            cells.append(Prose("\n\n".join(waiting)))
        cells.append(cell)
        waiting = [block.caption] if isinstance(block, Reference) and block.caption else []
    if waiting:
        cells.append(Prose("\n\n".join(waiting)))
    return cells


def notebook_name(chapter: Chapter, dialect: Dialect) -> str:
    """The name of its file, to which the notebooks of other chapters link.

    >>> from glassformer.school.learn.chapters import read_chapter
    >>> from glassformer.school.learn.markdown import MARIMO
    >>> notebook_name(read_chapter("masks", Language("en")), MARIMO)
    '05-masks.py'
    """
    return chapter_file(chapter.name).removesuffix(".md") + dialect.suffix


def _code_cell(block: Block) -> Cell | None:
    if isinstance(block, Snippet):
        return Code(block.code, block.output)
    if isinstance(block, Reference) and block.kind == "picture":
        return Figure(block.names[0])
    return None


def _markdown(block: Block, dialect: Dialect, known: Known, language: Language) -> str:
    if not isinstance(block, Reference):
        return block_markdown(block, dialect)
    if block.kind == "quiz":
        return "\n\n".join(_question(name, dialect, language) for name in block.names)
    shown = format_reference(block.kind, block.names, known, language)
    return f"{language.say(TITLES[block.kind])} `{shown}`"


def _question(name: str, dialect: Dialect, language: Language) -> str:
    """A question whose answer is opened by a click."""
    question = next(each for each in read_questions() if each.name == name)
    ask, short, full = (
        line_markdown(read_line(text[language.code]), dialect)
        for text in (question.ask, question.short, question.full)
    )
    code = f"\n\n```python\n{question.code.strip()}\n```" if question.code else ""
    answer = f"**{_without_strong(short)}**\n\n{full}{code}"
    title = language.say("learn.notebook.answer")
    return f"**?** {ask}\n\n{dialect.folded.format(title=title, text=answer)}"


def _without_strong(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"\1", text)
