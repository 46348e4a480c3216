"""`glassformer practice`: exercises in a folder, graded whenever they are saved."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import capstone, certificate, classroom, hand_in
from glassformer.cli.class_exercises import find_class_exercise, list_exercises, open_class
from glassformer.cli.completion import complete_exercise
from glassformer.cli.help import Command, Commands
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.school.practice import Exercise
    from glassformer.school.practice.workspace import Workspace
    from glassformer.school.progress import ProgressStore

_FAILED = 1
_N_SEEDS = 3


class _Practice(Commands):
    """Without the name of a command, it watches; what is no command is an exercise to watch."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        asks = bool(args) and args[0] in (*self.commands, "--help", "-h")
        return super().parse_args(ctx, args if asks else ["watch", *args])


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command and the commands below it."""
    say = language.say
    practice = typer.Typer(
        cls=_Practice,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.add_typer(practice, name="practice", help=say("practice.help"))
    folder_option = typer.Option("--dir", metavar="DIR", help=say("practice.folder"))
    class_option = typer.Option("--class", metavar="DIR", help=say("classroom.option"))
    json_option = typer.Option("--json", help=say("practice.json"))
    name_argument = typer.Argument(
        metavar="NAME", help=say("practice.name"), autocompletion=complete_exercise
    )
    default = Path("glassformer-practice")

    @practice.command("watch", cls=Command, help=say("practice.watch.help"))
    def watch(
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="[NAME]", help=say("practice.name"), autocompletion=complete_exercise
            ),
        ] = None,
        folder: Annotated[Path, folder_option] = default,
        class_folder: Annotated[Path | None, class_option] = None,
    ) -> None:
        _practise(name, folder, class_folder, language)

    @practice.command("list", cls=Command, help=say("practice.list.help"))
    def show_list(
        folder: Annotated[Path, folder_option] = default,
        class_folder: Annotated[Path | None, class_option] = None,
        plain: Annotated[bool, json_option] = False,
    ) -> None:
        _list(folder, class_folder, plain, language)

    @practice.command("run", cls=Command, help=say("practice.run.help"))
    def run(
        name: Annotated[str, name_argument],
        folder: Annotated[Path, folder_option] = default,
        class_folder: Annotated[Path | None, class_option] = None,
        plain: Annotated[bool, json_option] = False,
    ) -> None:
        _run(name, folder, class_folder, plain, language)

    @practice.command("hint", cls=Command, help=say("practice.hint.help"))
    def hint(
        name: Annotated[str, name_argument],
        folder: Annotated[Path, folder_option] = default,
        class_folder: Annotated[Path | None, class_option] = None,
        plain: Annotated[bool, json_option] = False,
    ) -> None:
        _hint(name, folder, class_folder, plain, language)

    @practice.command("reset", cls=Command, help=say("practice.reset.help"))
    def reset(
        name: Annotated[str, name_argument],
        folder: Annotated[Path, folder_option] = default,
        class_folder: Annotated[Path | None, class_option] = None,
        yes: Annotated[bool, typer.Option("--yes", help=say("practice.yes"))] = False,
    ) -> None:
        _reset(name, folder, class_folder, yes, language)

    @practice.command("verify", cls=Command, help=say("practice.verify.help"))
    def verify(
        names: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[NAME]...", help=say("practice.name"), autocompletion=complete_exercise
            ),
        ] = None,
        everything: Annotated[bool, typer.Option("--all", help=say("practice.all"))] = False,
        n_seeds: Annotated[
            int,
            typer.Option("--seeds", metavar="N", min=1, help=say("practice.seeds", n=_N_SEEDS)),
        ] = _N_SEEDS,
        seeds: Annotated[
            list[int] | None,
            typer.Option("--seed", metavar="SEED", min=0, help=say("practice.seed")),
        ] = None,
        class_folder: Annotated[Path | None, class_option] = None,
        plain: Annotated[bool, json_option] = False,
    ) -> None:
        chosen = _choose_exercises(names or [], everything, class_folder, language)
        verify_exercises(chosen, plain, language, n_seeds=n_seeds, seeds=seeds)

    capstone.add(practice, language, folder_option, json_option)
    hand_in.add(practice, language, folder_option, class_option)
    certificate.add(practice, language, folder_option, class_option, json_option)
    classroom.add(practice, language, json_option)


def _practise(
    name: str | None, folder: Path, class_folder: Path | None, language: Language
) -> None:
    """Create what is missing, then watch; without a terminal, grade once and say how to go on."""
    from glassformer.school.practice.session import PracticeSession
    from glassformer.school.practice.workspace import Workspace

    workspace = Workspace(folder, language, class_folder)
    exercises = list_exercises(class_folder, language)
    chosen = None if name is None else _find_exercise(name, class_folder, language).name
    is_new = not folder.exists()
    workspace.create(exercises)
    progress, notice = load_practice_progress(folder, language)
    progress.current = chosen or progress.current
    if is_new:
        notice = language.say("practice.welcome", folder=folder)
    session = PracticeSession(
        exercises=exercises,
        workspace=workspace,
        progress=progress,
        language=language,
        notice=notice,
    )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        _grade_once(session.current, workspace, progress, language)
        command = f"glassformer practice run {session.current.name}{workspace.options}"
        typer.echo(f"\n{language.say('practice.pipe', command=command)}")
        return
    from glassformer.school.practice.terminal_session import watch

    watch(session, folder, language)
    if session.unsaved:
        _print_note(f"\n{language.say('practice.notice.progress', reason=session.unsaved)}")
        return
    n_passed = sum(each.name in progress.passed for each in exercises)
    values = {"n": n_passed, "total": len(exercises), "command": workspace.command}
    typer.echo(f"\n{language.say('practice.bye', **values)}")


def load_practice_progress(folder: Path, language: Language) -> tuple["ProgressStore", str]:
    """The progress kept in a practice folder, and a notice where an older file was set aside."""
    from glassformer.school.progress import FILE, NotProgress, load_progress

    try:
        progress = load_progress(folder / FILE)
    except NotProgress as error:
        raise ConfigError(language.say("practice.error.progress", path=error.path)) from None
    if progress.kept_aside is None:
        return progress, ""
    return progress, language.say("practice.notice.aside", file=progress.kept_aside.name)


def _list(folder: Path, class_folder: Path | None, plain: bool, language: Language) -> None:
    from glassformer.school.practice.terminal import draw_list

    progress, notice = load_practice_progress(folder, language)
    _print_note(notice)
    exercises = list_exercises(class_folder, language)
    if plain:
        rows = [_row(exercise, progress, language) for exercise in exercises]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    n_passed = sum(each.name in progress.passed for each in exercises)
    terminal().print(draw_list(exercises, progress.passed, language))
    typer.echo(f"\n{language.say('practice.progress', n=n_passed, total=len(exercises))}")


def _row(exercise: "Exercise", progress: "ProgressStore", language: Language) -> dict[str, Any]:
    from glassformer.school.practice.session import count_hints_read

    brief = exercise.brief(language.code)
    return {
        "number": exercise.number,
        "name": exercise.name,
        "title": brief.title,
        "kind": exercise.kind,
        "minutes": exercise.minutes,
        "difficulty": exercise.difficulty,
        "passed": exercise.name in progress.passed,
        "hints": {"read": count_hints_read(progress, exercise, brief), "total": len(brief.hints)},
    }


def _run(
    name: str, folder: Path, class_folder: Path | None, plain: bool, language: Language
) -> None:
    exercise, workspace = _locate(name, folder, class_folder, language)
    progress, notice = load_practice_progress(folder, language)
    _print_note(notice)
    if not _grade_once(exercise, workspace, progress, language, plain=plain):
        raise typer.Exit(_FAILED)


def _grade_once(
    exercise: "Exercise",
    workspace: "Workspace",
    progress: "ProgressStore",
    language: Language,
    *,
    plain: bool = False,
) -> bool:
    from glassformer.school.practice.grading import Grader

    with Grader() as grader:
        # While that process loads torch, this one loads what it needs afterwards.
        from glassformer.school.practice.report_texts import as_json
        from glassformer.school.practice.session import Graded, PracticeSession
        from glassformer.school.practice.terminal import draw_report

        report = grader.grade(exercise, workspace.file(exercise))
    # The same book-keeping as in a sitting: progress, and the solution once it is earned.
    session = PracticeSession(
        exercises=[exercise], workspace=workspace, progress=progress, language=language
    )
    session.handle(Graded(report))
    if plain:
        typer.echo(json.dumps(as_json(report, exercise, language), ensure_ascii=False, indent=2))
    else:
        terminal().print(draw_report(report, exercise, language))
        path = workspace.solution_file(exercise)
        if report.passed and path.exists():
            typer.echo(f"\n{language.say('practice.solution', file=path)}")
    _print_note(session.notice)
    return report.passed


def _hint(
    name: str, folder: Path, class_folder: Path | None, plain: bool, language: Language
) -> None:
    from glassformer.school.practice.session import Key, PracticeSession, count_hints_read
    from glassformer.school.practice.terminal import draw_prose

    exercise, workspace = _locate(name, folder, class_folder, language, must_exist=False)
    progress, notice = load_practice_progress(folder, language)
    _print_note(notice)
    session = PracticeSession(
        exercises=[exercise], workspace=workspace, progress=progress, language=language
    )
    brief = exercise.brief(language.code)
    hints, read = brief.hints, 1  # without a folder, there is nobody to remember it for
    if folder.exists():
        session.handle(Key("h"))
        read = count_hints_read(progress, exercise, brief)
    if plain:
        typer.echo(json.dumps({"hint": hints[read - 1], "n": read, "total": len(hints)}))
        return
    typer.echo(language.say("practice.hint", n=read, total=len(hints)))
    terminal().print(draw_prose(hints[read - 1]))
    _print_note(session.notice)


def _reset(
    name: str, folder: Path, class_folder: Path | None, yes: bool, language: Language
) -> None:
    from glassformer.school.practice.session import Key, PracticeSession

    exercise, workspace = _locate(name, folder, class_folder, language)
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError(language.say("practice.error.ask"))
        question = language.say("practice.question.reset", file=exercise.file_name)
        if not typer.confirm(question, default=False):
            return
    progress, notice = load_practice_progress(folder, language)
    _print_note(notice)
    session = PracticeSession(
        exercises=[exercise], workspace=workspace, progress=progress, language=language
    )
    session.handle(Key("r"))
    session.handle(Key("y"))
    _print_note(session.notice)


def _choose_exercises(
    names: Sequence[str], everything: bool, class_folder: Path | None, language: Language
) -> "Sequence[Exercise]":
    """Of a class, the instructor's own exercises, drafts included."""
    from glassformer.school.practice import all_exercises

    if not names and not everything:
        raise ConfigError(language.say("practice.error.which"))
    known = all_exercises() if class_folder is None else open_class(class_folder).own
    return known if everything else [find_class_exercise(name, known, language) for name in names]


def verify_exercises(
    chosen: "Sequence[Exercise]",
    plain: bool,
    language: Language,
    *,
    n_seeds: int = _N_SEEDS,
    seeds: Sequence[int] | None = None,
) -> None:
    """Prove that exercises work, and show it; exit code 1 where one does not."""
    from glassformer.school.practice.verification import ExerciseVerdict, draw_seeds, verify

    say = language.say

    def show(verdict: ExerciseVerdict) -> None:
        if plain:
            return
        values = {"name": verdict.exercise, "faults": verdict.n_faults}
        typer.echo(say("practice.verify.line", **values, seconds=f"{verdict.seconds:.1f}"))
        for problem in verdict.problems:
            typer.echo(f"  ✗ {say(problem.key, **problem.values)}")
        if verdict.failed_seeds:
            options = " ".join(f"--seed {seed}" for seed in verdict.failed_seeds)
            typer.echo(f"  {say('practice.verify.repeat', options=options)}")

    n_graders = min(os.cpu_count() or 1, 4)
    verdicts = verify(
        chosen, seeds=seeds or draw_seeds(n_seeds), n_graders=n_graders, progress=show
    )
    n_problems = sum(len(verdict.problems) for verdict in verdicts)
    n_faults = sum(verdict.n_faults for verdict in verdicts)
    if plain:
        rows = [
            {
                "exercise": verdict.exercise,
                "faults": verdict.n_faults,
                "seconds": verdict.seconds,
                "problems": [say(problem.key, **problem.values) for problem in verdict.problems],
                "failed_seeds": verdict.failed_seeds,
            }
            for verdict in verdicts
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    elif n_problems:
        typer.echo(say("practice.verify.bad", n=n_problems, exercises=len(verdicts)))
    else:
        typer.echo(say("practice.verify.good", exercises=len(verdicts), faults=n_faults))
    if n_problems:
        raise typer.Exit(_FAILED)


def _find_exercise(name: str, class_folder: Path | None, language: Language) -> "Exercise":
    return find_class_exercise(name, list_exercises(class_folder, language), language, class_folder)


def _locate(
    name: str,
    folder: Path,
    class_folder: Path | None,
    language: Language,
    *,
    must_exist: bool = True,
) -> tuple["Exercise", "Workspace"]:
    from glassformer.school.practice.workspace import Workspace

    exercise = _find_exercise(name, class_folder, language)
    if must_exist and not folder.exists():
        raise ConfigError(language.say("practice.error.none", folder=folder))
    return exercise, Workspace(folder, language, class_folder)


def _print_note(sentence: str) -> None:
    if sentence:
        typer.echo(sentence, err=True)
