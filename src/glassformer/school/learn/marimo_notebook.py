"""Chapters as marimo notebooks: plain Python files whose cells run when what they read has changed.

marimo demands that each name is defined in one cell (`cell_names`); then it knows which cells
depend on which. Its files hold code alone, so outputs appear when the notebook is run.
"""

from pathlib import Path
from textwrap import indent

from glassformer.languages import Language
from glassformer.school.learn.cell_names import define_once, find_names
from glassformer.school.learn.chapters import Chapter
from glassformer.school.learn.markdown import MARIMO
from glassformer.school.learn.notebook_cells import Code, Figure, Prose, chapter_cells
from glassformer.school.learn.references import Known
from glassformer.storage import atomic_file

_MARK = "# A chapter of glassformer"  # only a notebook of ours is replaced
_VERSION = "0.25.2"  # of marimo, whose form of files this is
_IMPORTS = """\
import marimo as mo

from glassformer.school.learn.shown_picture import show_picture"""


def write_marimo_notebook(
    path: Path, chapter: Chapter, *, known: Known, language: Language
) -> None:
    """The notebook of a chapter, written whole or not at all."""
    text = marimo_notebook(chapter, known=known, language=language)
    with atomic_file(path, mark=_MARK.encode()) as unfinished:
        unfinished.write_text(text, "utf-8")


def marimo_notebook(chapter: Chapter, *, known: Known, language: Language) -> str:
    """The file as text: a function for each cell, its arguments what it reads from others."""
    note = language.say("learn.notebook.note.marimo")
    cells = chapter_cells(chapter, MARIMO, known=known, language=language, note=note)
    codes = iter(define_once([cell.source for cell in cells if isinstance(cell, Code)]))
    sources = [(_IMPORTS, True)]
    for cell in cells:
        match cell:
            case Prose(text):
                sources.append((f'mo.md(r"""\n{text}\n""")', True))
            case Figure(name):
                sources.append((f'show_picture("{name}", "{language.code}")', True))
            case Code():
                sources.append((next(codes), False))
    defined = set().union(*(find_names(source).defined for source, _ in sources))
    functions = "\n\n".join(
        _function(source, defined, is_hidden=is_hidden) for source, is_hidden in sources
    )
    return (
        f"{_MARK}, {chapter.name} ({language.code}). Open it with: marimo edit\n\n"
        f'import marimo\n\n__generated_with = "{_VERSION}"\napp = marimo.App()\n\n\n'
        f'{functions}\n\nif __name__ == "__main__":\n    app.run()\n'
    )


def _function(source: str, defined: set[str], *, is_hidden: bool) -> str:
    names = find_names(source)
    reads = ", ".join(sorted(names.read & defined))
    gives = sorted(name for name in names.defined if not name.startswith("_"))
    returned = f" ({', '.join(gives)}{',' * (len(gives) == 1)})" if gives else ""
    decorator = "@app.cell(hide_code=True)" if is_hidden else "@app.cell"
    return f"{decorator}\ndef _({reads}):\n{indent(source, '    ')}\n    return{returned}\n"
