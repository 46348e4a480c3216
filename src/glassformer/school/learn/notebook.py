"""Chapters as Jupyter notebooks: every cell with what it prints or draws.

A notebook can be read before anything is run, and every cell can be run and changed. Pictures are
cells that compute them; experiments and exercises are named with their commands.
"""

import json
from pathlib import Path
from typing import Any

from glassformer.languages import Language
from glassformer.school.learn.chapters import Chapter
from glassformer.school.learn.markdown import JUPYTER
from glassformer.school.learn.notebook_cells import Cell, Code, Figure, Prose, chapter_cells
from glassformer.school.learn.references import Known
from glassformer.school.learn.shown_picture import show_picture
from glassformer.storage import atomic_file

_MARK = '"glassformer": {'  # only a notebook of ours is replaced


def write_notebook(path: Path, chapter: Chapter, *, known: Known, language: Language) -> None:
    """The notebook of a chapter, written whole or not at all."""
    content = notebook(chapter, known=known, language=language)
    with atomic_file(path, mark=_MARK.encode()) as unfinished:
        unfinished.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")


def notebook(chapter: Chapter, *, known: Known, language: Language) -> dict[str, Any]:
    """A notebook of nbformat 4.5 as data."""
    note = language.say("learn.notebook.note")
    cells = chapter_cells(chapter, JUPYTER, known=known, language=language, note=note)
    return {
        # first, so that it is found near the beginning of the file
        "metadata": {
            "glassformer": {"chapter": chapter.name, "language": language.code},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
        "cells": [
            {"id": f"cell-{i}", "metadata": {}} | _as_data(cell, language)
            for i, cell in enumerate(cells)
        ],
    }


def _as_data(cell: Cell, language: Language) -> dict[str, Any]:
    match cell:
        case Prose(text):
            return {"cell_type": "markdown", "source": _lines(text)}
        case Code(source, printed):
            return _code(source, _stream(printed) if printed else None)
        case Figure(name):
            picture = show_picture(name, language.code)
            source = (
                "from glassformer.school.learn.shown_picture import show_picture\n\n"
                f'show_picture("{name}", "{language.code}")'
            )
            shown = {
                "text/html": _lines(picture._repr_html_()),
                "text/plain": _lines(repr(picture)),
            }
            return _code(source, {"output_type": "display_data", "data": shown, "metadata": {}})


def _code(source: str, output: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": _lines(source),
        "execution_count": None,
        "outputs": [] if output is None else [output],
    }


def _stream(printed: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": _lines(printed + "\n")}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
