"""Chapters as marimo notebooks: marimo finds each name defined once, no cycle, nothing missing."""

import builtins

import marimo
import pytest
from marimo._ast.app import InternalApp
from marimo._ast.load import load_app

from glassformer.cli import main
from glassformer.languages import CODES, Language
from glassformer.school.learn import Known, chapter_names, read_chapter
from glassformer.school.learn.blocks import Snippet, read_line
from glassformer.school.learn.marimo_notebook import marimo_notebook, write_marimo_notebook
from glassformer.school.learn.markdown import MARIMO, line_markdown

ENGLISH = Language("en")


@pytest.mark.parametrize("code", CODES)
def test_every_chapter_is_a_graph_of_cells(code, tmp_path):
    language = Language(code)
    for name in chapter_names():
        chapter, file = read_chapter(name, language), tmp_path / f"{name}.py"
        text = marimo_notebook(chapter, known=Known(), language=language)
        file.write_text(text, "utf-8")
        graph = InternalApp(load_app(file)).graph
        assert not graph.get_multiply_defined() and not graph.cycles, name
        cells = graph.cells.values()
        defined = set().union(*(cell.defs for cell in cells))
        missing = set().union(*(cell.refs for cell in cells)) - defined
        assert not {each for each in missing if not hasattr(builtins, each)}, name
        snippets = [block for block in chapter.blocks if isinstance(block, Snippet)]
        assert text.count("\n@app.cell\n") == len(snippets)


@pytest.mark.plain
def test_a_notebook_prints_what_its_chapter_shows(tmp_path, capsys):
    chapter = read_chapter("weights", Language("zh"))
    write_marimo_notebook(tmp_path / "w.py", chapter, known=Known(), language=Language("zh"))
    load_app(tmp_path / "w.py").run()
    shown = [block.output for block in chapter.blocks if isinstance(block, Snippet)]
    assert capsys.readouterr().out == "".join(f"{each}\n" for each in shown if each)


def test_marimo_reads_the_escapes_as_the_chapter_means_them():
    line = read_line("a\\_b \\* c < d > e \\[f\\] \\$5 `x|y` $x_1$ [two](02-weights.md)")
    html = marimo.md(line_markdown(line, MARIMO)).text
    assert "a_b * c &lt; d &gt; e &#91;f&#93; $5 <code>x|y</code>" in html
    assert '<a href="?file=02-weights.py">two</a>' in html and "||(x_1||)" in html


def test_the_name_of_the_file_or_the_format_decides(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "glassformer.school.learn.read_chapters",
        lambda language: [read_chapter(name, language) for name in ("why", "masks")],
    )
    folder, file = tmp_path / "all", tmp_path / "why.py"
    assert main(["learn", "--notebook", str(folder), "--format", "marimo"]) == 0
    assert sorted(each.name for each in folder.iterdir()) == ["01-why.py", "05-masks.py"]
    assert main(["learn", "why", "--notebook", str(file)]) == 0
    assert main(["learn", "why", "--notebook", str(file)]) == 0  # ours is replaced
    file.write_text("x = 1")
    assert main(["learn", "why", "--notebook", str(file)]) != 0
    assert file.read_text() == "x = 1"
    capsys.readouterr()
    wrong = ["learn", "why", "--notebook", str(tmp_path / "w.py"), "--format", "jupyter"]
    assert main(wrong) == 2 and "--format jupyter does not match" in capsys.readouterr().err
    assert main(["learn", "--format", "marimo"]) == 2
    assert "Add --notebook PATH" in capsys.readouterr().err
