"""`glassformer quiz`."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from datetime import date

import pytest
from rich.cells import cell_len

from glassformer.languages import CODES
from glassformer.school.learn import read_questions


@pytest.fixture
def quiz(run, tmp_path, monkeypatch):
    """The command with lines to read and a progress file of its own."""

    def asked(*words, lines=(), **environ):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return run("quiz", *words, "--progress", tmp_path / "p.json", **environ)

    return asked


def cards(tmp_path):
    return json.loads((tmp_path / "p.json").read_text())["cards"]


@pytest.mark.parametrize("lang", CODES)
def test_a_round_through_a_pipe(quiz, tmp_path, lang):
    lines = ["", "3", "", "4", "", "2", "1000000"]
    code, out, err = quiz("--topic", "why", "--lang", lang, lines=lines)
    assert (code, err) == (0, "")
    assert "4 / 4" in out and "\x1b" not in out
    found = cards(tmp_path)
    good, easy, hard, typed = (
        found[name] for name in ("why-static", "why-bottleneck", "why-parallel", "why-cost")
    )
    assert easy["due"] > good["due"] > hard["due"] > date.today().isoformat()
    assert easy["difficulty"] < good["difficulty"] < hard["difficulty"]
    assert typed == good  # a right number counts as a good answer
    assert {"en": "Right.", "zh": "答对了。"}[lang] in out


def test_a_wrong_number_is_asked_again(quiz, tmp_path):
    code, out, _ = quiz("--topic", "mistakes", lines=["1", "", "3", "", "3", "", "3", "0"])
    assert code == 0
    assert "Not quite." in out and out.count("floor-divided by 8 with //") == 2
    found = cards(tmp_path)
    assert found["mistakes-floor"]["answered"] == 1
    assert found["mistakes-floor"]["stability"] < found["mistakes-nan"]["stability"]


def test_what_cannot_be_read_is_asked_once_more(quiz):
    out = quiz("--topic", "mistakes", "--most", "1", lines=["zero", "0"])[1]
    assert "'zero' is not a number or a shape" in out and "Right." in out


def test_the_end_of_the_input_keeps_what_was_answered(quiz, tmp_path):
    code, out, err = quiz(lines=["", "3", ""])
    assert (code, err) == (0, "")
    assert "1 answered" in out
    assert list(cards(tmp_path)) == ["why-static"]


def test_nothing_answered_leaves_no_file(quiz, tmp_path):
    code, out, err = quiz()
    assert (code, err) == (0, "") and "No questions answered" in out
    assert not (tmp_path / "p.json").exists()


def test_q_ends_and_grades_may_be_words(quiz, tmp_path):
    quiz(lines=["", "easy", "q"])
    quiz("--lang", "zh", lines=["", "困难", "q"])
    found = cards(tmp_path)
    assert found["why-static"]["difficulty"] == 1.0 < found["why-bottleneck"]["difficulty"]


def test_nothing_is_asked_twice_on_one_day(quiz):
    quiz("--topic", "why", lines=["", "3", "", "3", "", "3", "1000000"])
    out = quiz("--topic", "why")[1]
    assert "Nothing is due today" in out
    assert "why" not in quiz(lines=["q"])[1].split("1 / 10")[1].splitlines()[0]


def test_the_list_and_json(quiz):
    code, out, _ = quiz("--list", "--topic", "masks")
    assert code == 0 and "7 questions" in out and "new" in out
    rows = json.loads(quiz("--json", "--lang", "zh")[1])
    assert len(rows) == len(read_questions())
    row = next(row for row in rows if row["name"] == "masks-count")
    assert (row["answer"], row["card"], row["topic"]) == ("36", None, "masks")
    quiz("--topic", "masks", lines=["", "3"])
    rows = json.loads(quiz("--json", "--topic", "masks")[1])
    assert rows[0]["card"]["due"] > date.today().isoformat()


@pytest.mark.parametrize("lang", CODES)
def test_an_unknown_topic_is_one_line(quiz, lang):
    code, out, err = quiz("--topic", "mask", "--lang", lang)
    assert (code, out) == (2, "")
    assert "'mask'" in err and "masks" in err and err.count("\n") == 1


def test_a_chapter_may_be_named_as_learn_has_it(quiz):
    out = quiz("weights", lines=["q"])[1]
    assert out == quiz("--topic", "weights", lines=["q"])[1] and "1 / 5  weights" in out


def test_what_is_typed_in_full_width_is_understood(quiz, tmp_path):
    quiz("why", "--lang", "zh", lines=["", "３", "Ｑ"])
    assert list(cards(tmp_path)) == ["why-static"]


@pytest.mark.parametrize("lang", CODES)
def test_questions_fit_a_narrow_window(quiz, lang):
    for words in (["heads"], ["heads", "--list"]):
        out = quiz(*words, "--lang", lang, lines=[""], COLUMNS=40)[1]
        assert max(map(cell_len, out.splitlines())) <= 40


@pytest.mark.parametrize("lang", CODES)
def test_a_place_that_cannot_be_written_is_one_line(run, tmp_path, monkeypatch, lang):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n3\n\n3\nq\n"))
    path = tmp_path / "file" / "p.json"
    code, out, err = run("quiz", "--progress", path, "--lang", lang)
    said = {"en": f"{path} could not be written: ", "zh": f"{path} 无法写入："}[lang]
    assert err.startswith(f"glassformer: {said}") and err.count("\n") == 1
    assert code == 0 and "3 / 10" in out  # the round goes on
    assert {"en": "comes back", "zh": "再问"}[lang] not in out


def test_ctrl_c_keeps_what_was_answered(tmp_path):
    path = tmp_path / "p.json"
    words = [sys.executable, "-m", "glassformer", "quiz", "--progress", str(path)]
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True
    ) as process:
        process.stdin.write("\n3\n")
        process.stdin.flush()
        until = time.monotonic() + 60
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=30)[0]
    assert process.returncode == 0
    assert "1 answered" in out
    assert list(cards(tmp_path)) == ["why-static"]


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [("en", "'5' is not a grade. Type 1, 2, 3 or 4"), ("zh", "'5' 不是评分。请输入 1、2、3 或 4")],
)
def test_a_grade_that_is_none_is_answered(quiz, lang, sentence):
    code, out, _ = quiz("--topic", "seeing", "--lang", lang, lines=["", "5", "", "3", "q"])
    assert code == 0
    assert " ".join(out.split()).count(sentence) == 1
