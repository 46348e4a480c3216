"""Reports, lists and screens for the terminal, as things that rich can print."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.columns import Beside
from glassformer.render.terminal.number_table import draw_numbers
from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.prose import read_prose
from glassformer.school.practice.report import GradingReport
from glassformer.school.practice.report_texts import checklist, describe_report, kind_label
from glassformer.school.practice.session import Screen

LEAST_WIDTH, LEAST_HEIGHT = 48, 14
_MARKS: dict[bool | None, tuple[str, str]] = {
    True: ("✓", "green"),
    False: ("✗", "red"),
    None: ("·", "dim"),
}
_BEGUN = ("nothing", "empty")  # files that still are as they were given
_MOST_PRINTED = 12  # rows


class _Flow:
    """Short texts one after the other; a line ends between two of them, never within one."""

    def __init__(self, pieces: Sequence[Text], gap: int = 2) -> None:
        self.pieces, self.gap = pieces, gap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        line = Text(no_wrap=True)
        for piece in self.pieces:
            if line and line.cell_len + self.gap + piece.cell_len > options.max_width:
                yield line
                line = Text(no_wrap=True)
            line.append(" " * self.gap if line else "").append_text(piece)
        yield line


class _Tail:
    """The last rows of a text, its lines folded where the window ends."""

    def __init__(self, text: str, rows: int) -> None:
        self.text, self.rows = Text(text), rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield from self.text.wrap(console, options.max_width, overflow="fold")[-self.rows :]


def draw_screen(screen: Screen, language: Language, *, width: int, height: int) -> RenderableType:
    """The whole of what the watcher shows."""
    say = language.say
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        sizes = {"width": width, "height": height, "least": LEAST_WIDTH, "high": LEAST_HEIGHT}
        return Paragraph(say("practice.small", **sizes))
    parts: list[RenderableType]
    if screen.state == "list":
        room = max(3, height - 6)
        parts = [draw_list(screen.exercises, screen.passed, language, screen.cursor, room)]
    else:
        parts = _draw_work(screen, language)
    if screen.notice:
        parts += ["", Paragraph(screen.notice, style="yellow")]
    return Group(*parts, "", _draw_foot(screen, language))


def _draw_work(screen: Screen, language: Language) -> list[RenderableType]:
    say, report = language.say, screen.report
    brief = screen.exercise.brief(language.code)
    parts: list[RenderableType] = [_draw_head(screen.exercise, brief.title, language)]
    if screen.shows_solution:
        return [*parts, "", Syntax(screen.exercise.solution, "python", background_color="default")]
    if report is None or report.kind in _BEGUN:
        parts += ["", draw_prose(brief.text)]
    if screen.running and report is None:
        parts += ["", Text(say("practice.running"), style="dim")]
    elif report is not None:
        parts += ["", draw_report(report, screen.exercise, language)]
    for n, hint in enumerate(screen.hints, start=1):
        title = say("practice.hint", n=n, total=screen.n_hints)
        parts += ["", Text(title, style="bold yellow"), _indent(draw_prose(hint))]
    if report is not None and report.passed and screen.solution is not None:
        path = f"{screen.solution.parent.name}/{screen.solution.name}"
        parts += ["", Paragraph(say("practice.solution", file=path), style="dim")]
    return [*parts, "", Text(str(screen.file), style="cyan underline", overflow="fold")]


def _draw_head(exercise: Exercise, title: str, language: Language) -> RenderableType:
    minutes = language.say("practice.minutes", n=exercise.minutes)
    about = f"{kind_label(exercise, language)} · {minutes} · {_level(exercise)}"
    head = Text.assemble((f"{exercise.number:02d} {exercise.name}  ", "bold cyan"), (title, "bold"))
    return Group(head, Text(about, style="dim"))


def _level(exercise: Exercise) -> str:
    return "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)


def _draw_foot(screen: Screen, language: Language) -> RenderableType:
    total = len(screen.exercises)
    done = sum(each.name in screen.passed for each in screen.exercises)
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(
        ProgressBar(total=total, completed=done, width=24),
        Text(language.say("practice.progress", n=done, total=total)),
    )
    keys = [
        Text.assemble((key, "bold cyan"), f" {language.say(label)}") for key, label in screen.keys
    ]
    return Group(bar, _Flow(keys, gap=3))


def draw_report(report: GradingReport, exercise: Exercise, language: Language) -> RenderableType:
    """The result of a grading: the verdict, the mistake, the line, the numbers."""
    say = language.say
    parts: list[RenderableType] = []
    if report.passed:
        then = exercise.brief(language.code).then
        parts += [Text(f"✓ {say('practice.passed')}", style="bold green")]
        parts += [_draw_checklist(report, exercise, language)]
        parts += _draw_measurements(report, language)
        parts += ["", Text(say("practice.then"), style="bold"), _indent(draw_prose(then))]
    else:
        description = describe_report(report, exercise, language)
        parts += [Text(f"✗ {say('practice.failed')}", style="bold red")]
        if report.kind not in _BEGUN and any(each.held is not None for each in report.checked):
            parts += [_draw_checklist(report, exercise, language)]
        parts += ["", *(draw_prose(sentence) for sentence in description.sentences)]
        parts += [Paragraph(description.where, style="bold")] if description.where else []
        parts += [Paragraph(description.seen, style="dim")] if description.seen else []
        if report.tables is not None:
            parts += ["", draw_tables(report.tables, language)]
        parts += _draw_measurements(report, language)
    if report.printed.strip():
        shown = "\n".join(map(_make_harmless, report.printed.rstrip().splitlines()))
        parts += ["", Text(say("practice.printed"), style="dim")]
        parts += [_indent(_Tail(shown, _MOST_PRINTED))]
    return Group(*parts)


def _make_harmless(line: str) -> str:
    """What was printed must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else "·" for c in line).expandtabs(4)


def _draw_checklist(
    report: GradingReport, exercise: Exercise, language: Language
) -> RenderableType:
    pieces = []
    for label, held in checklist(report, exercise, language):
        mark, style = _MARKS[held]
        pieces.append(Text.assemble((f"{mark} ", style), (label, "dim")))
    return _Flow(pieces)


def _draw_measurements(report: GradingReport, language: Language) -> list[RenderableType]:
    if report.measured is None:
        return []
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    for name, value in report.measured.items():
        shown = f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)
        table.add_row(name, shown)
    return ["", Text(language.say("practice.measured"), style="bold"), _indent(table)]


def draw_tables(tables: Mapping[str, Any], language: Language) -> RenderableType:
    """Expected, yours and the difference as small matrices, side by side."""
    expected, yours = (
        [[float(cell) for cell in row] for row in tables[name]] for name in ("expected", "yours")
    )
    rows = [""] * len(tables["rows"]) if tables["flat"] else [str(i) for i in tables["rows"]]
    columns = [str(j) for j in tables["columns"]]
    off = [
        [0.0 if a == b else b - a for a, b in zip(*pair, strict=True)]
        for pair in zip(expected, yours, strict=True)
    ]
    drawn = [
        draw_numbers(numbers, rows, columns, title=language.say(title))
        for numbers, title in (
            (expected, "practice.table.expected"),
            (yours, "practice.table.yours"),
            (off, "practice.table.difference"),
        )
    ]
    return _indent(Beside(*drawn))


def draw_list(
    exercises: Sequence[Exercise],
    passed: frozenset[str] | set[str],
    language: Language,
    cursor: int | None = None,
    room: int | None = None,
) -> RenderableType:
    """All exercises, one line each; with a cursor, those around it."""
    say = language.say
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    heads = ("name", "kind", "minutes", "level")
    keys = {
        "name": "practice.column.name",
        "kind": "practice.column.kind",
        "minutes": "practice.column.minutes",
        "level": "practice.column.level",
    }
    table.add_column("")
    table.add_column("")
    for head in heads:
        table.add_column(say(keys[head]), no_wrap=True, justify="left")
    first, last = 0, len(exercises)
    if cursor is not None and room is not None and room < last:
        first = min(max(0, cursor - room // 2), last - room)
        last = first + room
    for place in range(first, last):
        exercise = exercises[place]
        mark, style = _MARKS[True if exercise.name in passed else None]
        table.add_row(
            Text("▸" if place == cursor else " ", style="bold cyan"),
            Text(mark, style=style),
            Text(f"{exercise.number:02d} {exercise.name}", style="bold" * (place == cursor)),
            kind_label(exercise, language),
            say("practice.minutes", n=exercise.minutes),
            _level(exercise),
        )
    return table


def draw_prose(text: str) -> RenderableType:
    """Paragraphs, lists, lines of code; `code` in its colour."""
    parts: list[RenderableType] = []
    for kind, lines in read_prose(text):
        if parts:
            parts.append("")
        if kind == "code":
            parts.append(Text("\n".join(lines), style="cyan", no_wrap=True))
        else:
            parts += [Paragraph(line) for line in lines]
    return Group(*parts)


def _indent(part: RenderableType) -> RenderableType:
    return Padding(part, (0, 0, 0, 2))
