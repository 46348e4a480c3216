"""Line numbers that follow the code, and links that lead nowhere and say so."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CODE = """\
import math

NAMES = ("a", "b")


def attend(q):
    return q / math.sqrt(2)


class Head:
    def forward(self):
        return attend(1) + attend(2)

    def backward(self):
        return attend(3)
"""
LINES = {"NAMES": 3, "attend": 6, "return q / math.sqrt": 7, "Head": 10, "Head.backward": 14}

refresh = SimpleNamespace(**runpy.run_path(str(DOCS / "refresh_lines.py")))


def link(piece, line):
    return f"[`{piece}` · head.py:{line}](../head.py#L{line})"


@pytest.fixture
def docs(tmp_path):
    (tmp_path / "head.py").write_text(CODE, "utf-8")
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


def write(docs, *shown):
    (docs / "page.md").write_text("".join(f"- {each} 注意\n" for each in shown), "utf-8")


def numbers(docs):
    text = (docs / "page.md").read_text("utf-8")
    assert re.findall(r":(\d+)\]", text) == re.findall(r"#L(\d+)\)", text)
    return [int(n) for n in re.findall(r"#L(\d+)\)", text)]


@pytest.mark.parametrize(("piece", "line"), LINES.items())
def test_a_piece_has_its_line(piece, line):
    """A definition is found by its name, however often the name is used elsewhere."""
    assert refresh.line_of(piece, CODE) == line


@pytest.mark.parametrize(("piece", "count"), [("nowhere", 0), ("attend(", 3), ("math", 2)])
def test_a_piece_must_stand_on_one_line(piece, count):
    with pytest.raises(ValueError, match=rf"`{re.escape(piece)}` .* it stands on {count}\."):
        refresh.line_of(piece, CODE)


def test_numbers_follow_the_code(docs, capsys):
    write(docs, *(link(piece, 0) for piece in LINES))
    assert refresh.main(docs) == 0
    assert numbers(docs) == list(LINES.values())
    assert capsys.readouterr().out == "page.md: line numbers refreshed\n"

    (docs.parent / "head.py").write_text("# moved\n\n" + CODE, "utf-8")
    assert refresh.main(docs) == 0
    assert numbers(docs) == [line + 2 for line in LINES.values()]
    assert "注意" in (docs / "page.md").read_text("utf-8")


def test_right_numbers_are_left_alone(docs, capsys):
    write(docs, link("Head", 10))
    assert refresh.main(docs) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (link("gone", 4), "page.md: head.py: `gone` must be defined"),
        (link("attend", 4).replace("../head", "../lost"), "page.md: .*lost.py"),
    ],
)
def test_a_link_that_leads_nowhere_stops_everything(docs, capsys, broken, sentence):
    write(docs, link("Head", 1), broken)
    assert refresh.main(docs) == 1
    assert numbers(docs) == [1, 4]
    assert re.search(sentence, capsys.readouterr().err)
