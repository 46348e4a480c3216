"""`glassformer learn --plan`: a course plan, with what is done and what is next."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language, flag
from glassformer.render.paragraph import Paragraph

if TYPE_CHECKING:
    from glassformer.school.progress import ProgressStore

PLANS = ("weekend", "weeks", "interview")
_KINDS = {
    "chapter": "plan.kind.chapter",
    "lab": "plan.kind.lab",
    "practice": "plan.kind.practice",
    "quiz": "plan.kind.quiz",
    "capstone": "plan.kind.capstone",
}


def show_plan(
    name: str, learning: "ProgressStore", folder: Path, *, as_json: bool, language: Language
) -> None:
    """Print one plan; exercises count as done where the practice folder says so."""
    if name not in PLANS:
        known = ", ".join(PLANS)
        raise ConfigError(language.say("plan.error.name", plans=known, got=repr(name)))
    from glassformer.cli.practice import load_practice_progress
    from glassformer.school.plans import describe_plan, read_plan

    practice, notice = load_practice_progress(folder, language)
    if notice:
        typer.echo(notice, err=True)
    plan = describe_plan(read_plan(name), learning, practice, language)
    if as_json:
        typer.echo(json.dumps(plan, ensure_ascii=False))
    else:
        _draw(plan, terminal(), language)


def _draw(plan: dict[str, Any], console: Console, language: Language) -> None:
    from glassformer.school.plans import (
        MINUTES_PER_QUESTION,
        MINUTES_PER_VERDICT,
        WORDS_PER_MINUTE,
    )

    say = language.say
    steps = [step for part in plan["parts"] for step in part["steps"]]
    hours = _format_time(plan["minutes"], language)
    console.print(Text(f"{plan['title']} · {hours}", style="bold"))
    console.print(Paragraph(plan["goal"]))
    for part in plan["parts"]:
        time = _format_time(part["minutes"], language)
        console.print()
        console.print(Text(f"{part['title']} · {time}", style="bold"))
        console.print(_draw_steps(part["steps"], language))
    console.print()
    n_done = sum(step["done"] for step in steps)
    left = _format_time(sum(s["minutes"] for s in steps if not s["done"]), language)
    console.print(Paragraph(say("plan.done", n=n_done, total=len(steps), time=left)))
    if plan["next"] is None:
        console.print(Paragraph(say("plan.finished")))
    else:
        command = plan["next"]["command"] + flag(language, os.environ)
        console.print(Paragraph(say("plan.next", command=command), style="cyan"))
    basis = say(
        "plan.basis",
        words=WORDS_PER_MINUTE,
        question=MINUTES_PER_QUESTION,
        verdict=MINUTES_PER_VERDICT,
    )
    console.print(Paragraph(basis, style="dim"))


def _draw_steps(steps: list[dict[str, Any]], language: Language) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    for step in steps:
        table.add_row(
            "✓" if step["done"] else "·",
            language.say(_KINDS[step["kind"]]),
            step["name"],
            Paragraph(step["title"]),
            language.say("practice.minutes", n=step["minutes"]),
        )
    return table


def _format_time(minutes: int, language: Language) -> str:
    if minutes < 60:
        return language.say("practice.minutes", n=minutes)
    return language.say("plan.hours", n=f"{minutes / 60:.1f}")
