"""`glassformer learn`."""

import json
import os
import re

import pytest
from rich.cells import cell_len

from glassformer.languages import CODES
from glassformer.school.learn import chapter_names


@pytest.fixture
def learn(run, tmp_path):
    """The command with a progress file of its own."""
    return lambda *words, **environ: run(
        "learn", *words, "--progress", tmp_path / "p.json", **environ
    )


@pytest.mark.parametrize("lang", CODES)
def test_all_chapters_are_listed(learn, lang):
    code, out, err = learn("--lang", lang, COLUMNS=100)
    assert (code, err) == (0, "")
    for name in chapter_names():
        assert re.search(rf"^ *\d+ +{name} ", out, re.MULTILINE)
    assert "glassformer learn --next" in out


@pytest.mark.parametrize("lang", CODES)
@pytest.mark.parametrize("columns", [48, 60, 80])
def test_the_list_cuts_no_title(learn, lang, columns):
    out = learn("--lang", lang, COLUMNS=columns)[1]
    assert "…" not in out
    assert max(map(cell_len, out.splitlines())) <= columns
    for chapter in json.loads(learn("--json", "--lang", lang)[1]):
        # Chinese may break after any character, and the other columns then stand in between.
        parts = chapter["title"] if lang == "zh" else chapter["title"].split()
        assert all(part in out for part in parts)


@pytest.mark.parametrize("lang", CODES)
@pytest.mark.parametrize("name", chapter_names())
def test_a_chapter_fits_the_terminal(learn, name, lang):
    code, out, err = learn(name, "--lang", lang)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    widest = max(out.splitlines(), key=cell_len)
    assert cell_len(widest) <= 80, widest
    assert (
        "{{" not in out and "$" not in out.replace("$ ", "") and "\\" not in out.replace("\\n", "")
    )


def test_reading_is_remembered(learn):
    learn("masks")
    listed = json.loads(learn("--json")[1])
    assert [chapter["name"] for chapter in listed if chapter["read"]] == ["masks"]
    assert "✓" in learn()[1]


def test_next_goes_on(learn):
    assert "Why attention" in learn("--next")[1]
    assert "From dot products" in learn("--next")[1]
    assert "Multi-head attention" in learn("masks", "--next")[1]
    assert "You have read every chapter" in learn(chapter_names()[-1], "--next")[1]


def test_json_counts_questions(learn):
    listed = json.loads(learn("--json", "--lang", "zh")[1])
    assert [chapter["number"] for chapter in listed] == list(range(1, len(listed) + 1))
    assert listed[4]["title"] == "掩码：哪个位置可以关注哪里"
    assert all(chapter["questions"] >= 3 and chapter["answered"] == 0 for chapter in listed)


@pytest.mark.parametrize("lang", CODES)
def test_the_book(run, tmp_path, lang):
    path = tmp_path / "book.html"
    code, out, err = run("learn", "--book", path, "--lang", lang)
    assert (code, err) == (0, "") and str(path) in out.replace("\n", "")
    assert path.read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "said"),
    [(["maskz"], "'maskz'"), (["--book", "book.pdf"], "'book.pdf'")],
)
@pytest.mark.parametrize("lang", CODES)
def test_what_is_wrong_is_one_line(learn, words, said, lang):
    code, out, err = learn(*words, "--lang", lang)
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1


def test_a_damaged_file_is_told_of_and_kept(run, tmp_path):
    path = tmp_path / "p.json"
    path.write_text("{")
    code, out, err = run("learn", "--progress", path)
    assert code == 0 and "why" in out
    assert "p.json.damaged-1" in err and err.count("\n") == 1
    assert (tmp_path / "p.json.damaged-1").read_text() == "{"


@pytest.mark.parametrize("lang", CODES)
@pytest.mark.parametrize("command", ["learn", "quiz"])
@pytest.mark.parametrize("kind", ["pipe", "diary"])
def test_what_is_not_ours_is_refused_and_left_alone(run, tmp_path, command, kind, lang):
    path = tmp_path / "mine"
    os.mkfifo(path) if kind == "pipe" else path.write_text("Dear diary")
    before = os.lstat(path)
    code, out, err = run(command, "--progress", path, "--lang", lang)
    assert (code, out) == (2, "") and err.count("\n") == 1
    said = {
        "pipe": {"en": "is kept in a regular file; ", "zh": "不是普通文件，没有改动它"},
        "diary": {"en": "was not written by glassformer", "zh": "不是 glassformer 写的文件"},
    }[kind][lang]
    assert said in err
    assert os.lstat(path)[:2] == before[:2] and list(tmp_path.glob("mine*")) == [path]
    if kind == "diary":
        assert path.read_text() == "Dear diary"


def test_a_chapter_is_shown_even_if_nothing_can_be_kept(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run("learn", "why", XDG_DATA_HOME=tmp_path / "file", HOME=tmp_path)
    assert code == 0 and "Word vectors without context" in out
    assert "progress.json could not be written: " in err and err.count("\n") == 1
    err = run("learn", "why", "--lang", "zh")[2]
    assert "progress.json 无法写入：" in err and err.count("\n") == 1


def test_progress_lies_where_the_platform_has_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    run("learn", "why", XDG_DATA_HOME=tmp_path)
    assert (tmp_path / "glassformer" / "progress.json").exists()
