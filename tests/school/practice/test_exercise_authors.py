"""The guide for authors, in both languages: its example works as it stands there."""

import re
from pathlib import Path

import pytest

from glassformer.school.practice.exercise import _SETTINGS, KINDS, read_exercise
from glassformer.school.practice.verification import verify_one
from school.practice.every_exercise import SEEDS

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {"en": "exercise-authors.md", "zh": "exercise-authors.zh.md"}
BLOCK = re.compile(r"^```(?:python|toml)\n# (\w+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TASK = re.compile(r"^```markdown\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(code):
    return (DOCS / PAGES[code]).read_text("utf-8")


def files(code):
    return dict(BLOCK.findall(read(code)))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "99_masked_mean"
    folder.mkdir()
    for name, text in files("en").items():
        (folder / name).write_text(text, "utf-8")
    for code in PAGES:
        (brief,) = TASK.findall(read(code))
        (folder / f"{code}.md").write_text(brief, "utf-8")
    return folder


def test_the_example_is_a_whole_exercise(folder, grader):
    exercise = read_exercise(folder)
    verdict = verify_one(exercise, grader, seeds=SEEDS)
    assert (verdict.problems, verdict.n_faults) == ((), 3)


def test_both_pages_show_the_same_files():
    assert files("en") == files("zh")
    assert set(files("en")) == {
        "exercise.toml",
        "stub.py",
        "solution.py",
        "faults.toml",
        "checks.py",
    }


@pytest.mark.parametrize("code", PAGES)
def test_every_field_and_kind_is_told(code):
    text = read(code)
    for name in (*_SETTINGS - {"cases"}, *KINDS, "[cases.NAME]"):
        assert f"`{name}`" in text, name
    assert len(text.splitlines()) <= 140
