"""A capstone run for the terminal, as something that rich can print."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.school.practice.capstone.capstone_report import (
    LENT,
    WRONG,
    YOURS,
    CapstoneReport,
)
from glassformer.school.practice.capstone.capstone_texts import (
    describe_counts,
    describe_mistake,
    describe_next,
    describe_outcome,
    describe_state,
    describe_title,
    in_one_line,
)
from glassformer.school.practice.exercise import find_exercise
from glassformer.school.practice.workspace import Workspace

_MARKS = {YOURS: ("✓", "green"), LENT: ("·", "dim"), WRONG: ("✗", "red")}


def draw_capstone(
    report: CapstoneReport, workspace: Workspace, language: Language
) -> RenderableType:
    """The parts with their states, the mistakes, the text, and what comes next."""
    parts: list[RenderableType] = [Text(describe_title(report, language), style="bold"), ""]
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="ellipsis", no_wrap=True)
    for each in report.parts:
        exercise = find_exercise(each.part)
        mark, style = _MARKS[each.state]
        table.add_row(
            Text(f"{mark} {describe_state(each, language)}", style=style),
            Text(
                f"{exercise.number:02d} {exercise.name}", style="" if each.state != LENT else "dim"
            ),
            Text(exercise.brief(language.code).title, style="dim"),
        )
    parts += [table, "", Text(describe_counts(report, language))]
    for each in report.parts:
        sentences, where = describe_mistake(each, language)
        if not sentences:
            continue
        name = find_exercise(each.part).file_name
        parts += ["", Text(f"✗ {name}", style="bold red")]
        parts += [_indent(Paragraph(sentence)) for sentence in sentences]
        parts += [_indent(Paragraph(where, style="bold"))] if where else []
    parts += ["", Paragraph(report.text, style="dim")]
    if report.joined is not None:
        parts.append(_indent(Paragraph(in_one_line(report.joined), style="bold")))
    parts += ["", *(Paragraph(each) for each in describe_outcome(report, language))]
    parts.append(Paragraph(describe_next(report, workspace, language), style="bold"))
    return Group(*parts)


def _indent(part: RenderableType) -> RenderableType:
    return Padding(part, (0, 0, 0, 2))
