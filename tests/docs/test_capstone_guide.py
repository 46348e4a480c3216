"""The guide to the capstone shows what the command prints."""

import re
from pathlib import Path

import pytest

from glassformer.cli import main
from glassformer.school.practice import find_exercise
from glassformer.school.practice.capstone.parts import TRACKS

VARIABLES = ("GLASSFORMER_LANG", "LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "FORCE_COLOR")
DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(("guide", "code"), [("capstone.md", "en"), ("capstone.zh.md", "zh")])
def test_the_output_in_the_guide_is_the_command_s(tmp_path, monkeypatch, capsys, guide, code):
    blocks = BLOCK.findall((DOCS / guide).read_text("utf-8"))
    sources = [text for kind, text in blocks if kind == "python"]
    [printed] = [text for kind, text in blocks if kind == "text"]
    folder = tmp_path / "glassformer-practice"
    folder.mkdir()
    for name, source in zip(("19_split_heads.py", "50_rotary.py"), sources, strict=True):
        (folder / name).write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["practice", "capstone", "The cat sat on the mat.", "--lang", code]) == 1
    assert capsys.readouterr().out.strip() == printed.strip()


def test_the_minutes_in_the_guide_are_those_of_the_exercises():
    for guide in ("capstone.md", "capstone.zh.md"):
        text = (DOCS / guide).read_text("utf-8")
        rows = dict(re.findall(r"\d\d `(\w+)` \| (\d+) \|", text))
        parts = {name for track in TRACKS.values() for name in track.parts}
        assert {name: int(n) for name, n in rows.items()} == {
            name: find_exercise(name).minutes for name in parts
        }
        first, second = (set(TRACKS[name].parts) for name in ("translator", "decoder"))
        totals = [sum(find_exercise(n).minutes for n in each) for each in (first, second - first)]
        assert all(f"{total} " in text for total in totals)
