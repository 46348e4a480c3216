"""`glassformer learn`: the chapters, in the terminal or as one book."""

import json
import os
from dataclasses import asdict
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType
from rich.table import Table

from glassformer.cli.completion import complete_chapter, complete_choice
from glassformer.cli.help import Command
from glassformer.cli.plan import PLANS, show_plan
from glassformer.cli.terminal import complain, terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.paths import user_path
from glassformer.render.paragraph import Paragraph

if TYPE_CHECKING:
    from glassformer.school.progress import ProgressStore


class NotebookForm(StrEnum):
    """The programs that notebooks are written for."""

    jupyter = "jupyter"
    marimo = "marimo"


_NARROW = 60  # columns, below which a table has none to give away


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("learn", cls=Command, help=say("learn.help"))
    def learn(
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="[CHAPTER]", help=say("learn.name"), autocompletion=complete_chapter
            ),
        ] = None,
        following: Annotated[bool, typer.Option("--next", help=say("learn.next"))] = False,
        plan: Annotated[
            str | None,
            typer.Option(
                "--plan",
                metavar="|".join(PLANS),
                help=say("learn.plan"),
                autocompletion=complete_choice(*PLANS),
            ),
        ] = None,
        folder: Annotated[
            Path, typer.Option("--dir", metavar="DIR", help=say("learn.folder"))
        ] = Path("glassformer-practice"),
        book: Annotated[
            str | None, typer.Option("--book", metavar="FILE", help=say("learn.book"))
        ] = None,
        notebook: Annotated[
            str | None, typer.Option("--notebook", metavar="PATH", help=say("learn.notebook"))
        ] = None,
        form: Annotated[
            NotebookForm | None, typer.Option("--format", help=say("learn.format"))
        ] = None,
        progress: Annotated[
            str | None, typer.Option("--progress", metavar="FILE", help=say("learn.progress"))
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=say("learn.json"))] = False,
    ) -> None:
        if form is not None and notebook is None:
            raise ConfigError(say("learn.error.format.alone"))
        if book is not None:
            _write_book(book, language)
            return
        if notebook is not None:
            _write_notebooks(name, notebook, form, language)
            return
        kept = open_progress(progress, language)
        if plan is not None:
            if name is not None or following:
                raise ConfigError(say("plan.error.chapter"))
            show_plan(plan, kept, folder, as_json=as_json, language=language)
            return
        if following:
            from glassformer.school.learn.listing import find_next

            name = find_next(kept, name)
            if name is None:
                terminal().print(say("learn.all"))
                return
        if name is not None:
            _show(name, kept, language)
        elif as_json:
            from glassformer.school.learn.listing import list_chapters

            rows = [asdict(each) for each in list_chapters(kept, language)]
            typer.echo(json.dumps(rows, ensure_ascii=False))
        else:
            _list(kept, terminal(), language)


def open_progress(path: str | None, language: Language) -> "ProgressStore":
    """The learner's progress; a file that could not be used is kept, and named."""
    from glassformer.school.progress import NotProgress, load_progress

    try:
        found = load_progress(None if path is None else user_path(path))
    except NotProgress as error:
        key = "learn.error.special" if error.is_special else "learn.error.foreign"
        raise ConfigError(language.say(key, path=error.path)) from None
    if found.kept_aside is not None:
        complain(ConfigError(language.say("learn.aside", path=found.kept_aside)))
    return found


def save_progress(progress: "ProgressStore", language: Language) -> bool:
    """Keep the progress; where that cannot be, say so."""
    from glassformer.school.progress import Unsaved

    try:
        progress.save()
    except Unsaved as error:
        values = {"file": error.path, "reason": f"{error.reason} (--progress FILE)"}
        complain(ConfigError(language.say("practice.notice.readonly", **values)))
        return False
    return True


def known_names() -> "tuple[set[str], set[str]]":
    """The experiments and the exercises that can be called by name."""
    from glassformer.cli.known_names import exercise_names, experiment_names

    return experiment_names(), exercise_names()


def _show(name: str, progress: "ProgressStore", language: Language) -> None:
    from glassformer.school.learn import Known, read_chapter
    from glassformer.school.learn.terminal import draw_chapter

    lab, practice = known_names()
    chapter = read_chapter(name, language)
    drawing = draw_chapter(chapter, known=Known(lab, practice), language=language)
    _print_paged(drawing, terminal())
    progress.mark_read(chapter.name, date.today())
    save_progress(progress, language)  # if it cannot be, the chapter is read all the same


def _print_paged(drawing: RenderableType, console: Console) -> None:
    """Through a pager where a person sits in front of a terminal, straight on otherwise."""
    if not console.is_terminal:
        console.print(drawing)
        return
    os.environ.setdefault("LESS", "-RFX")  # colours; no pager for what fits the window
    with console.pager(styles=True):
        console.print(drawing)


def _list(progress: "ProgressStore", console: Console, language: Language) -> None:
    from glassformer.school.learn.listing import list_chapters

    say, chapters = language.say, list_chapters(progress, language)
    is_narrow = console.width < _NARROW
    gap = 1 if is_narrow else 2
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column(say("learn.column.name"), style="cyan", no_wrap=True)
    table.add_column(say("learn.column.title"))
    table.add_column(say("learn.column.read"), no_wrap=True)
    asked = "?" if is_narrow else say("learn.column.questions")
    table.add_column(asked, justify="right", max_width=10)
    for chapter in chapters:
        table.add_row(
            str(chapter.number),
            chapter.name,
            Paragraph(chapter.title),
            "✓" if chapter.read else "·",
            f"{chapter.answered} / {chapter.questions}",
        )
    console.print(table)
    console.print()
    n_read = sum(chapter.read is not None for chapter in chapters)
    console.print(Paragraph(say("learn.so.far", n=n_read, total=len(chapters)), style="dim"))


def _write_book(book: str, language: Language) -> None:
    from glassformer.school.learn import Known
    from glassformer.school.learn.book import write_book

    path = user_path(book)
    if path.suffix != ".html":
        raise ConfigError(language.say("learn.error.suffix", got=repr(book)))
    lab, practice = known_names()
    write_book(path, known=Known(lab, practice), language=language)
    terminal().print(language.say("learn.written", path=path))


def _write_notebooks(
    name: str | None, place: str, form: NotebookForm | None, language: Language
) -> None:
    """One chapter into a file, or into a folder; without a name, all of them into a folder."""
    from glassformer.school.learn import Known, read_chapter, read_chapters
    from glassformer.school.learn.marimo_notebook import write_marimo_notebook
    from glassformer.school.learn.markdown import JUPYTER, MARIMO
    from glassformer.school.learn.notebook import write_notebook
    from glassformer.school.learn.notebook_cells import notebook_name

    path, say = user_path(place), language.say
    suffixes = {JUPYTER.suffix: NotebookForm.jupyter, MARIMO.suffix: NotebookForm.marimo}
    of_file = suffixes.get(path.suffix)
    is_file = of_file is not None
    if (is_file and name is None) or (path.exists() and path.is_dir() is is_file):
        raise ConfigError(say("learn.error.notebook", got=repr(place)))
    if of_file and form and form != of_file:
        raise ConfigError(say("learn.error.format", form=form.value, got=repr(place)))
    is_marimo = (of_file or form) == NotebookForm.marimo
    write, dialect = (write_marimo_notebook, MARIMO) if is_marimo else (write_notebook, JUPYTER)
    chapters = read_chapters(language) if name is None else [read_chapter(name, language)]
    lab, practice = known_names()
    for chapter in chapters:
        file = path if is_file else path / notebook_name(chapter, dialect)
        write(file, chapter, known=Known(lab, practice), language=language)
        terminal().print(say("learn.written", path=file))
