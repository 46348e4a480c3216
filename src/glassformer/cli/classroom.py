"""`glassformer practice class` and `practice new`: for instructors."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.cli.class_exercises import open_class
from glassformer.cli.completion import complete_choice
from glassformer.cli.help import Command, Commands
from glassformer.cli.plan import PLANS
from glassformer.cli.progress import progress_bar
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.paths import user_path
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.legend import draw_legend

if TYPE_CHECKING:
    from glassformer.school.classroom.class_overview import ClassOverview

_MARKS = {"solved": "✓", "tried": "✗", "untried": "·", "ungraded": "?"}
_MOST_MISTAKES = 10
_UNUSABLE = 1


def add(practice: typer.Typer, language: Language, json_option: Any) -> None:
    """Declare the commands below `practice`."""
    say = language.say
    group = typer.Typer(
        cls=Commands,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    practice.add_typer(group, name="class", help=say("classroom.help"))
    folder_argument = typer.Argument(metavar="DIR", help=say("classroom.folder"))

    @group.command("create", cls=Command, help=say("classroom.create.help"))
    def create(
        folder: Annotated[str, folder_argument],
        title: Annotated[
            str | None, typer.Option("--title", metavar="TEXT", help=say("classroom.title"))
        ] = None,
        plan: Annotated[
            str,
            typer.Option(
                "--plan",
                metavar="|".join(PLANS),
                help=say("classroom.plan"),
                autocompletion=complete_choice(*PLANS),
            ),
        ] = "weeks",
        start: Annotated[
            str | None, typer.Option("--start", metavar="DAY", help=say("classroom.start"))
        ] = None,
    ) -> None:
        _create(user_path(folder), title, plan, start, language)

    @group.command("show", cls=Command, help=say("classroom.show.help"))
    def show(
        folder: Annotated[str, folder_argument],
        regrade: Annotated[bool, typer.Option("--regrade", help=say("classroom.regrade"))] = False,
        unprotected: Annotated[
            bool, typer.Option("--without-isolation", help=say("classroom.unprotected"))
        ] = False,
        plain: Annotated[bool, json_option] = False,
    ) -> None:
        _show(user_path(folder), regrade, unprotected, plain, language)

    @practice.command("new", cls=Command, help=say("practice.new.help"))
    def new(
        name: Annotated[str, typer.Argument(metavar="NAME", help=say("practice.new.name"))],
        class_folder: Annotated[
            str, typer.Option("--class", metavar="DIR", help=say("classroom.folder"))
        ],
    ) -> None:
        _create_exercise(name, user_path(class_folder), language)


def _create(
    folder: Path, title: str | None, plan: str, start: str | None, language: Language
) -> None:
    from glassformer.school.classroom.class_folder import create_class

    say = language.say
    if plan not in PLANS:
        raise ConfigError(say("plan.error.name", plans=", ".join(PLANS), got=repr(plan)))
    try:
        first = date.today() if start is None else date.fromisoformat(start)
    except ValueError:
        raise ConfigError(say("classroom.error.day", got=repr(start))) from None
    made = create_class(
        folder, title=title or folder.resolve().name, plan=plan, start=first, language=language
    )
    entries = [(str(part.opens), f"{part.title} ({len(part.exercises)})") for part in made.parts]
    console = terminal()
    console.print(Paragraph(say("classroom.created", folder=folder)))
    console.print(draw_legend(entries, style="cyan", gap=3))
    console.print(Paragraph(say("classroom.learners", folder=folder)))


def _create_exercise(name: str, class_folder: Path, language: Language) -> None:
    from glassformer.cli.practice import verify_exercises
    from glassformer.school.classroom.new_exercise import create_exercise

    exercise = create_exercise(open_class(class_folder), name)
    typer.echo(language.say("practice.new.written", folder=exercise.folder))
    verify_exercises([exercise], False, language)
    typer.echo(language.say("practice.new.next", name=name, folder=class_folder))


def _show(folder: Path, regrade: bool, unprotected: bool, plain: bool, language: Language) -> None:
    from glassformer.school.classroom.class_overview import (
        describe_overview,
        list_hand_ins,
        survey_class,
    )

    classroom = open_class(folder)
    if not regrade:
        overview = survey_class(classroom, language)
    else:
        from glassformer.school.practice.grading import Grader
        from glassformer.school.practice.isolation import LAYERS, available_layers

        missing = set(LAYERS) - set(available_layers())
        if missing and not unprotected:
            raise ConfigError(language.say("classroom.error.isolation", layers=", ".join(LAYERS)))
        label, total = language.say("classroom.regrading"), len(list_hand_ins(classroom))
        with Grader() as grader, progress_bar(label, total=total, is_counted=True) as advance:
            overview = survey_class(classroom, language, grader=grader, progress=advance)
    if plain:
        typer.echo(json.dumps(describe_overview(overview, language), ensure_ascii=False, indent=2))
    else:
        terminal().print(Group(*_draw(overview, language)))
    if overview.n_unusable:
        raise typer.Exit(_UNUSABLE)


def _draw(overview: "ClassOverview", language: Language) -> Iterator[RenderableType]:
    say, classroom = language.say, overview.classroom
    yield Text(classroom.title, style="bold")
    key = "classroom.basis.regraded" if overview.is_regraded else "classroom.basis.files"
    yield Paragraph(say(key), style="dim")
    yield ""
    if overview.rows:
        yield _draw_table(overview)
        yield Paragraph(say("classroom.marks", **_MARKS), style="dim")
    else:
        yield Paragraph(say("classroom.nobody", folder=classroom.hand_ins))
    if stuck := overview.list_stuck():
        yield from _draw_section(
            say("classroom.stuck"),
            [(name, f"{len(who)}: {say('list.comma').join(who)}") for name, who in stuck],
        )
    if overview.mistakes:
        yield from _draw_section(
            say("classroom.mistakes"),
            [
                (f"{each.n_learners} × {each.exercise}", each.sentence)
                for each in overview.mistakes[:_MOST_MISTAKES]
            ],
        )
    if overview.notes:
        notes = [("–", say(note.key, **note.values)) for note in overview.notes]
        yield from _draw_section(say("classroom.notes"), notes)


def _draw_table(overview: "ClassOverview") -> Table:
    """A row for each learner: a mark for each exercise, the parts of the class set apart."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="cyan", overflow="fold", max_width=24)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    n_all = len(overview.classroom.exercises)
    for row in overview.rows:
        parts = (
            "".join(_MARKS[row.states[exercise.name]] for exercise in part.exercises)
            for part in overview.classroom.parts
        )
        table.add_row(row.name, f"{row.n_solved} / {n_all}", " ".join(parts))
    return table


def _draw_section(title: str, entries: list[tuple[str, str]]) -> Iterator[RenderableType]:
    yield ""
    yield Text(title, style="bold")
    yield draw_legend(entries, gap=2)
