"""Learner's code that is wrong in every way but the right one: a sentence, and grading goes on."""

import os
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.report_texts import describe_report

# Only what never ends is stopped early; all else has time, however busy the machine is.
ATTENTION = replace(find_exercise("attention"), seconds=60.0)
ENDLESS = replace(ATTENTION, seconds=2.0)
HAN = range(0x4E00, 0x9FFF)
GOOD = """
import math
def attention(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v
"""


def body(text):
    return "import math, os, sys, time, torch\n\ndef attention(q, k, v):\n" + textwrap.indent(
        textwrap.dedent(text).strip(), "    "
    )


CASES = {
    "syntax": ("def attention(q, k, v)\n    return q", "syntax", 1, "not valid Python"),
    "indent": ("def attention(q, k, v):\nreturn q", "syntax", 2, "not valid Python"),
    "return outside": ("return 3", "syntax", 1, "'return' outside function"),
    "null byte": ("x = 1\x00", "syntax", None, "not valid Python"),
    "empty file": ("", "missing", None, "must define attention"),
    "other name": ("def atention(q, k, v):\n    return q", "missing", None, "defines atention"),
    "raises at import": ("x = 1\nraise ValueError('no')", "import", 2, "ValueError: no"),
    "unknown import": ("import nothing_like_this", "import", 1, "nothing_like_this"),
    "not a function": ("attention = 3", "fault", 1, "called like a function"),
    "too few arguments": ("def attention(q, k):\n    return q", "fault", 1, "more than it takes"),
    "raises": (body("x = 1\nreturn q @ torch.zeros(99, 1).double()"), "fault", 5, "meets 99"),
    "raises itself": (body("raise KeyError('mine')"), "raised", 4, "KeyError: 'mine'"),
    "recursion": (body("return attention(q, k, v)"), "fault", 4, "calls itself without end"),
    "nothing": (body("q @ v.mT if False else 1"), "nothing", 3, "attention returns None"),
    "a string": (body("return 'q'"), "type", 4, "must be of the type Tensor; yours is str"),
    "an array": (body("return v.numpy()"), "type", 4, "yours is ndarray"),
    "a pair": (body("return q, k"), "type", 4, "yours is tuple of 2 (Tensor, Tensor)"),
    "a function": (body("return math.sqrt"), "type", 4, "builtin_function_or_method"),
    "shape": (body("return q @ k.mT @ v[..., :1]"), "shape", 4, "must have the shape"),
    "dtype": (
        body("return ((q @ k.mT) / q.shape[-1] ** 0.5).softmax(-1).float() @ v.float()"),
        "fault",
        4,
        "its dtype is float32. Return float64",
    ),
    "nan": (body("return q @ k.mT @ v * math.nan"), "fault", 4, "is NaN"),
    "loop": (body("while True:\n    x = 1"), "time", (4, 5), "Still running after"),
    "loop that swallows": (
        body("while True:\n    try:\n        time.sleep(1)\n    except BaseException: pass"),
        "time",
        None,
        "Still running after",
    ),
    "loop at import": ("while True: pass", "time", 1, "Still running after"),
    "sleep": (body("time.sleep(99)"), "time", 4, "Still running after"),
    "memory": (body("return torch.ones(1 << 33)"), "memory", 4, "more than 1 GiB"),
    "memory of lists": (body("x = [0]\nwhile True: x += x"), "memory", 5, "more than 1 GiB"),
    "megabytes": (body("while True: print('x' * 9999)"), "output", None, "prints more than 1 MB"),
    "exit": (body("exit()"), "exit", 4, "exits the program"),
    "sys.exit at import": ("import sys\nsys.exit(3)", "exit", 2, "exits the program"),
    "os._exit": (body("os._exit(0)"), "exit", None, "exits the program"),
    "abort": (body("os.abort()"), "died", None, "SIGABRT"),
    "changes q": (body("q *= 2\nreturn q"), "changed", 3, "modifies its input q in place"),
    "shrinks v": (body("v.resize_(0)\nreturn q"), "changed", 3, "modifies its input v in place"),
    "writes": (body("open('mine.txt', 'w').write('x')"), "blocked", 4, "writes to a file"),
    "writes, and hides it": (
        body("try:\n    open('mine.txt', 'w')\nexcept Exception: pass\nreturn q"),
        "blocked",
        None,
        "writes to a file",
    ),
    "saves": (body("torch.save(q, 'mine.pt')"), "blocked", 4, "writes to a file"),
    "removes": (body("os.remove('mine.txt')"), "blocked", 4, "writes to a file"),
    "starts a program": (body("os.system('true')"), "blocked", 4, "other processes"),
    "forks": (body("os.fork()"), "blocked", 4, "other processes"),
    "kills": (body("os.kill(os.getppid(), 9)"), "blocked", 4, "other processes"),
    "calls": (
        body("import urllib.request\nurllib.request.urlopen('http://localhost:1')"),
        "blocked",
        5,
        "network",
    ),
    "large result": (body("return torch.ones(1).expand(9_000_000, 9)"), "large", 4, "far larger"),
    "asks": (body("return input()"), "raised", 4, "EOFError"),
    "debugs": (body("breakpoint()"), "raised", 3, "Your code raises BdbQuit"),
    "raises no Exception": (
        body("class Mine(BaseException): pass\nraise Mine('no')"),
        "raised",
        5,
        "Your code raises Mine: no",
    ),
    "raises without a word": (body("raise ValueError"), "raised", 4, "Your code raises ValueError"),
    "nested too deep": (
        "x = " + "-" * 99_999 + "1",
        "syntax",
        None,
        "not valid Python: MemoryError.",
    ),
    "deaf to alarms": (
        body(
            """
            import signal
            for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF):
                signal.setitimer(timer, 0)
            while True: pass
            """
        ),
        "time",
        None,
        "Still running after",
    ),
    "closes all and stays": (
        body(
            """
            os.closerange(0, 99)
            while True:
                try: time.sleep(9)
                except BaseException: pass
            """
        ),
        "time",
        None,
        "Still running after",
    ),
    "saves elsewhere": (
        body("torch.save(q, os.path.dirname(__file__) + '/mine.pt')"),
        "blocked",
        4,
        "writes to a file",
    ),
    "sparse": (body("return (q @ k.mT).to_sparse()"), "type", 4, "yours is Tensor (float64, torch"),
    "on meta": (body("return q.to('meta')"), "type", 4, "torch.strided, meta)"),
    "writes where we read": (
        body(
            """
            for end in range(3, 99):
                try: os.write(end, b'{"case": 0}\\n')
                except OSError: pass
            return q
            """
        ),
        "interfered",
        None,
        "The program interfered with grading",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_is_a_sentence_with_the_learners_line(grader, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, kind, line, said = CASES[name]
    exercise = ENDLESS if kind == "time" else ATTENTION
    report = grader.grade_source(exercise, source, tmp_path / "05_attention.py")
    sentence = " ".join(describe_report(report, exercise, Language("en")).sentences)
    assert (report.passed, report.kind) == (False, kind), sentence
    assert said in sentence
    assert report.line in (line if isinstance(line, tuple) else (line,))
    assert "glassformer" not in sentence.replace("glassformer[", "")
    chinese = " ".join(describe_report(report, exercise, Language("zh")).sentences)
    assert any(ord(character) in HAN for character in chinese)
    assert not list(tmp_path.iterdir())


def test_the_grader_lives_on(grader):
    assert grader.grade_source(ATTENTION, GOOD).passed


def test_a_seed_is_no_reading_of_solutions(grader):
    source = "import torch\n" + GOOD.replace("    return", "    torch.manual_seed(3)\n    return")
    assert grader.grade_source(ATTENTION, source).passed


def test_prints_are_shown_and_cannot_steer_the_terminal(grader):
    source = GOOD.replace("    return", "    print('\\x1b[31mshape', q.shape)\n    return")
    report = grader.grade_source(ATTENTION, source)
    assert report.passed and "shape torch.Size" in report.printed


def test_every_grading_draws_other_numbers(grader):
    wrong = GOOD.replace(".softmax(-1)", ".softmax(-1).square()")
    given = {grader.grade_source(ATTENTION, wrong).given for _ in range(6)}
    assert len(given) > 1


def test_files_that_cannot_be_read(grader, tmp_path):
    path = tmp_path / "05_attention.py"
    assert grader.grade(ATTENTION, path).kind == "absent"
    path.write_bytes(b"\xff\xfe\x00")
    assert grader.grade(ATTENTION, path).kind == "unreadable"
    path.write_text("#" * (2 << 20))
    assert grader.grade(ATTENTION, path).kind == "unreadable"
    path.unlink()
    path.mkdir()
    assert grader.grade(ATTENTION, path).kind == "unreadable"
    path.rmdir()
    os.mkfifo(path)
    assert grader.grade(ATTENTION, path).kind == "unreadable"


def test_a_byte_that_is_not_utf8_is_told_with_its_line(grader, tmp_path):
    path = tmp_path / "05_attention.py"
    path.write_bytes(b"# one\n# caf\xe9\n")
    report = grader.grade(ATTENTION, path)
    assert (report.kind, report.line) == ("unreadable", 2)
    said = describe_report(report, ATTENTION, Language("en")).sentences
    assert said == ("The file cannot be read: 0xe9. Save it as UTF-8 text.",)


def test_a_mark_before_utf8_is_no_mistake(grader, tmp_path):
    path = tmp_path / "05_attention.py"
    path.write_text(GOOD, "utf-8-sig")
    assert grader.grade(ATTENTION, path).passed


def test_a_package_that_is_missing_is_told(grader):
    exercise = replace(ATTENTION, needs=("nothing_like_this",))
    assert exercise.missing_packages() == ["nothing_like_this"]


def test_a_module_beside_the_file_does_not_stand_in_for_torch(grader, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit")
    (tmp_path / "random.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert grader.grade_source(ATTENTION, "import torch\n" + GOOD, Path("05_attention.py")).passed


def test_what_kills_every_grader_is_the_learners_doing(grader, monkeypatch):
    dead = [grader._server]
    start = grader._start

    def start_dead():
        server = start()
        server.kill()
        server.wait()
        dead.append(server)
        return server

    monkeypatch.setattr(grader, "_start", start_dead)
    grader._server.kill()
    grader._server.wait()
    report = grader.grade_source(ATTENTION, GOOD)
    assert (report.kind, report.finding.values) == ("died", {"how": "SIGKILL"})
    assert len(dead) == 3


def test_a_grader_whose_process_died_starts_another(grader):
    grader._server.kill()
    grader._server.wait()
    assert grader.grade_source(ATTENTION, GOOD).passed
