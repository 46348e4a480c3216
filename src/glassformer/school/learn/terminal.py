"""Chapters and questions in the terminal."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table as Grid
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph, wrap_text
from glassformer.school.learn.bars import BAR_PICTURES, draw_bars
from glassformer.school.learn.blocks import (
    Block,
    Formula,
    Heading,
    Items,
    Line,
    Prose,
    Reference,
    Snippet,
    Table,
    Verbatim,
    plain_text,
    read_line,
)
from glassformer.school.learn.chapters import Chapter
from glassformer.school.learn.merges import MERGE_PICTURES, draw_merges
from glassformer.school.learn.questions import Question, read_questions
from glassformer.school.learn.references import TITLES, Known, format_reference
from glassformer.school.learn.unicode_math import to_unicode

_STYLES = {"strong": "bold", "emphasis": "italic", "code": "cyan", "formula": "green", "link": ""}


def draw_chapter(chapter: Chapter, *, known: Known, language: Language) -> RenderableType:
    """A whole chapter, its pictures computed now."""
    title = f"{chapter.number}  {plain_text(chapter.title)}"
    parts: list[RenderableType] = ["", Rule(Text(title, style="bold"), align="left", style="dim")]
    for block in chapter.blocks:
        parts += ["", _draw_block(block, known, language)]
    return Group(*parts)


def draw_line(markdown: str, *, style: str = "") -> RenderableType:
    """One paragraph of Markdown, such as a question."""
    return Flowing(style_line(read_line(markdown), style))


def draw_proofs(question: Question, *, known: Known, language: Language) -> RenderableType:
    """What proves the answer to a question, and how to get there."""
    return Group(*(_draw_pointer(kind, (name,), known, language) for kind, name in question.proofs))


def draw_code(code: str) -> RenderableType:
    """Python in the colours of the terminal."""
    return Syntax(code, "python", theme="ansi_dark", background_color="default", word_wrap=True)


@dataclass(frozen=True)
class Flowing:
    """Words of several styles that fill the width they are given."""

    text: Text

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        start = 0
        for line in wrap_text(self.text.plain, options.max_width):
            start = self.text.plain.index(line, start)
            shown = self.text[start : start + len(line)]
            shown.no_wrap, shown.overflow = True, "ignore"
            yield shown
            start += len(line)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, Paragraph(self.text.plain))


def style_line(line: Line, style: str = "") -> Text:
    """A line as text with styles; formulas as they can be read."""
    text = Text(style=style)
    for piece in line:
        shown = to_unicode(piece.text) if piece.kind == "formula" else piece.text
        # Terminals that know hyperlinks open the address; the others show the words.
        look = f"link {piece.target}" if piece.leaves_course else _STYLES.get(piece.kind, "")
        text.append(shown, style=look)
    return text


def _draw_block(block: Block, known: Known, language: Language) -> RenderableType:
    match block:
        case Heading(_, line):
            return Flowing(style_line(line, "bold cyan"))
        case Prose(line):
            return Flowing(style_line(line))
        case Items(lines, first):
            marks = ["•" if first is None else f"{first + i}." for i in range(len(lines))]
            grid = Grid.grid(padding=(0, 1, 0, 0))
            grid.add_column(no_wrap=True)
            grid.add_column()
            for mark, line in zip(marks, lines, strict=True):
                grid.add_row(mark, Flowing(style_line(line)))
            return Padding(grid, (0, 0, 0, 1))
        case Table(head, rows):
            return _draw_table(head, rows)
        case Formula(tex):
            return Padding(Text(to_unicode(tex), style="green"), (0, 0, 0, 4))
        case Snippet(code, output):
            return _draw_snippet(code, output)
        case Verbatim(text):
            return Padding(Text(text, no_wrap=True, overflow="ignore"), (0, 0, 0, 4))
        case Reference():
            return _draw_reference(block, known, language)


def _draw_table(head: tuple[Line, ...], rows: tuple[tuple[Line, ...], ...]) -> RenderableType:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for line in head:
        grid.add_column(Flowing(style_line(line, "bold")))
    for row in rows:
        grid.add_row(*(Flowing(style_line(cell)) for cell in row))
    return Padding(grid, (0, 0, 0, 2))


def _draw_snippet(code: str, output: str) -> RenderableType:
    python = draw_code(code)
    shown = Text("\n".join(f"│ {line}".rstrip() for line in output.splitlines()), style="dim")
    return Padding(Group(python, shown), (0, 0, 0, 2))


def _draw_reference(block: Reference, known: Known, language: Language) -> RenderableType:
    if block.kind == "picture":
        parts: list[RenderableType] = [_draw_picture(block.names[0], language)]
        if block.caption:
            parts += ["", Flowing(style_line(read_line(block.caption), "dim"))]
        return Padding(Group(*parts), (0, 0, 0, 2))
    if block.kind == "quiz":
        return _draw_questions(block.names, language)
    return _draw_pointer(block.kind, block.names, known, language)


def _draw_picture(name: str, language: Language) -> RenderableType:
    if name in BAR_PICTURES:
        return draw_bars(BAR_PICTURES[name](language))
    if name in MERGE_PICTURES:
        return draw_merges(MERGE_PICTURES[name](language), language=language)
    # Imported here: a list of questions, and a chapter that computes nothing, must not load torch.
    from glassformer.school.learn.picture_terminal import draw_picture
    from glassformer.school.learn.pictures import draw

    return draw_picture(draw(name, language), language=language)


def _draw_questions(names: tuple[str, ...], language: Language) -> RenderableType:
    by_name: Mapping[str, Question] = {question.name: question for question in read_questions()}
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name in names:
        grid.add_row("?", draw_line(by_name[name].ask[language.code]))
    topics = dict.fromkeys(by_name[name].topic for name in names)
    commands = [f"glassformer quiz --topic {topic}" for topic in topics]
    note = language.say("learn.quiz.note", command=language.say("list.comma").join(commands))
    return Group(Padding(grid, (0, 0, 1, 1)), Paragraph(note, style="dim"))


def _draw_pointer(
    kind: str, names: tuple[str, ...], known: Known, language: Language
) -> RenderableType:
    title = language.say(TITLES[kind])
    gap = "" if title.endswith("：") else " "
    shown = format_reference(kind, names, known, language)
    return Flowing(Text.assemble((f"▸ {title}{gap}", "bold"), (shown, "cyan")))
