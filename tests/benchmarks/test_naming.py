"""The set of mistakes is read as it was written, and what the grader says is counted rightly."""

import importlib.util
import sys
from pathlib import Path

import pytest

from glassformer.school.practice import GradingReport, all_exercises

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def naming():
    spec = importlib.util.spec_from_file_location("naming", BENCHMARKS / "naming.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["naming"] = module
    spec.loader.exec_module(module)
    return module


def test_every_file_of_the_set_says_what_it_is(naming):
    paths = sorted((BENCHMARKS / "mistakes").glob("*/*.py"))
    labels = [naming.read_label(path.read_text("utf-8"), path)[0] for path in paths]
    assert labels.count("mistake") >= 60
    assert {path.parent.name for path in paths} <= {exercise.name for exercise in all_exercises()}


def test_a_file_without_a_label_is_refused(naming):
    with pytest.raises(SystemExit, match=r"f\.py must begin with"):
        naming.read_label("x = 1\n", Path("f.py"))


@pytest.mark.parametrize(
    ("label", "fields", "outcome"),
    [
        ("mistake", {"kind": "fault", "faults": ("a",)}, "named"),
        ("mistake", {"kind": "value", "faults": ("a",), "names_faults": False}, "withheld"),
        ("mistake", {"kind": "value"}, "unnamed"),
        ("mistake", {"kind": "changed"}, "stated"),
        ("correct", {"kind": "value"}, "rejected"),
    ],
)
def test_outcomes_are_told_apart(naming, label, fields, outcome):
    report = GradingReport(exercise="attention", passed=False, **fields)
    assert naming.name_outcome(label, report) == outcome
    passed = GradingReport(exercise="attention", passed=True)
    assert naming.name_outcome(label, passed) == "passed"
