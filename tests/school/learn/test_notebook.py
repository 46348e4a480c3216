"""Chapters as notebooks: valid, complete, linked, and what runs in them is what they show."""

import io
import json
from contextlib import redirect_stdout

import nbformat
import pytest
from nbclient import NotebookClient

from glassformer.cli import main
from glassformer.languages import CODES, Language
from glassformer.school.learn import Known, chapter_names, read_chapter, read_chapters
from glassformer.school.learn.blocks import Reference, Snippet, read_line
from glassformer.school.learn.markdown import JUPYTER, line_markdown
from glassformer.school.learn.notebook import notebook, write_notebook
from glassformer.school.learn.notebook_cells import Code, chapter_cells, notebook_name

ENGLISH = Language("en")


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", chapter_names())
def test_a_chapter_is_a_valid_notebook_with_all_it_has(name, code):
    language = Language(code)
    chapter = read_chapter(name, language)
    content = notebook(chapter, known=Known(), language=language)
    nbformat.validate(content)
    code_cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    snippets = [block for block in chapter.blocks if isinstance(block, Snippet)]
    pictures = [b for b in chapter.blocks if isinstance(b, Reference) and b.kind == "picture"]
    sources = ["".join(cell["source"]) for cell in code_cells]
    assert [each.code for each in snippets] == [s for s in sources if "show_picture" not in s]
    assert len(code_cells) == len(snippets) + len(pictures)
    assert all(cell["outputs"] for cell in code_cells)
    prose = "".join(
        "".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "markdown"
    )
    assert "{{" not in prose and ".md)" not in prose
    names = {notebook_name(each, JUPYTER) for each in read_chapters(language)}
    for block in chapter.blocks:
        for piece in getattr(block, "line", ()):
            if piece.kind == "link" and not piece.leaves_course:
                target = piece.target.removesuffix(".md") + ".ipynb"
                assert target in names and f"]({target})" in prose


def test_cells_print_what_they_show():
    """The snippets of every chapter are run elsewhere; here, as a reader runs them."""
    chapter = read_chapter("weights", ENGLISH)
    space: dict[str, object] = {}
    for cell in chapter_cells(chapter, JUPYTER, known=Known(), language=ENGLISH, note=""):
        if isinstance(cell, Code):
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(cell.source, space)
            assert printed.getvalue().rstrip("\n") == cell.printed.rstrip("\n")


@pytest.mark.plain
def test_jupyter_runs_one(tmp_path):
    path = tmp_path / "scale.ipynb"
    write_notebook(path, read_chapter("scale", ENGLISH), known=Known(), language=ENGLISH)
    content = nbformat.read(path, as_version=4)
    before = [cell.outputs for cell in content.cells if cell.cell_type == "code"]
    NotebookClient(content, timeout=300, startup_timeout=300).execute(cwd=tmp_path)
    after = [cell.outputs for cell in content.cells if cell.cell_type == "code"]
    for shown, found in zip(before, after, strict=True):
        if shown[0].output_type == "stream":  # a kernel may send it in parts
            assert "".join(each.text for each in found) == shown[0].text
        else:
            assert found[0].data["text/html"] == shown[0].data["text/html"]


def test_only_our_notebooks_are_replaced(tmp_path):
    path = tmp_path / "why.ipynb"
    assert main(["learn", "why", "--notebook", str(path)]) == 0
    assert json.loads(path.read_text("utf-8"))["metadata"]["glassformer"]["chapter"] == "why"
    assert main(["learn", "why", "--notebook", str(path)]) == 0
    path.write_text("{}")
    assert main(["learn", "why", "--notebook", str(path)]) != 0
    assert path.read_text() == "{}"


def test_all_chapters_into_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "glassformer.school.learn.read_chapters",
        lambda language: [read_chapter(name, language) for name in ("why", "masks")],
    )
    assert main(["learn", "--notebook", str(tmp_path / "books")]) == 0
    written = sorted(each.name for each in (tmp_path / "books").iterdir())
    assert written == ["01-why.ipynb", "05-masks.ipynb"]
    for wrong in (
        ["learn", "--notebook", str(tmp_path / "all.ipynb")],
        ["learn", "why", "--notebook", str(tmp_path / "books" / "01-why.ipynb" / "x")],
    ):
        assert main(wrong) != 0


def test_characters_that_mean_something_are_escaped():
    line = read_line("a\\_b \\* c < d \\$5 and `x|y` [two](02-weights.md)")
    found = line_markdown(line, JUPYTER)
    assert found == "a\\_b \\* c \\< d \\$5 and `x|y` [two](02-weights.ipynb)"
    assert read_line(found.replace(".ipynb", ".md")) == line
