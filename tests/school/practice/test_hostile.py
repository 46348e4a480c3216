"""Programs that mean no good: none passes, none ends the grader, and the next grading works."""

from dataclasses import replace

import pytest

from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.isolation import LANDLOCK, SECCOMP
from glassformer.school.practice.landlock import landlock_version
from glassformer.school.practice.report_texts import describe_report
from glassformer.school.practice.seccomp import seccomp_is_available
from school.practice.hostile import FORGED, GROUPS, REPLACING

ATTENTION = replace(find_exercise("attention"), seconds=60.0)
ENDLESS = replace(ATTENTION, seconds=1.0)
PROGRAMS = [(group, name) for group, programs in GROUPS.items() for name in programs]
# Without isolation these may do what they try; everything else must fail everywhere.
NEED_ISOLATION = "reading", "ending"


def is_isolated():
    return bool(landlock_version()) and seccomp_is_available()


def test_there_are_many():
    assert len(PROGRAMS) >= 93


@pytest.mark.parametrize(("group", "name"), PROGRAMS)
def test_no_hostile_program_passes_or_ends_the_grader(grader, group, name, tmp_path, monkeypatch):
    if group in NEED_ISOLATION and not is_isolated():
        pytest.skip("this system cannot isolate a process")
    monkeypatch.chdir(tmp_path)
    exercise = ENDLESS if group == "hanging" else ATTENTION
    report = grader.grade_source(exercise, GROUPS[group][name], tmp_path / "05_attention.py")
    assert not report.passed
    for code in ("en", "zh"):
        description = describe_report(report, exercise, Language(code))
        assert description.sentences and all(each.isprintable() for each in description.sentences)
    assert not list(tmp_path.iterdir())


def test_the_grader_grades_on(grader):
    assert grader.grade_source(ATTENTION, ATTENTION.solution).passed


@pytest.mark.parametrize("name", ["the end", "a hundred cases", "an object dtype", "without end"])
def test_forged_lines_are_called_interference(grader, name):
    report = grader.grade_source(ATTENTION, FORGED[name])
    assert (report.kind, report.finding.key) == ("interfered", "practice.found.interfered")


@pytest.mark.parametrize("name", ["torch.allclose", "Tensor.__eq__", "the grader's comparison"])
def test_what_is_replaced_is_named(grader, name):
    report = grader.grade_source(ATTENTION, REPLACING[name])
    assert report.kind == "replaced" and report.finding.values["name"]


def test_a_report_says_what_isolated_the_program(grader):
    layers = [LANDLOCK] * bool(landlock_version()) + [SECCOMP] * seccomp_is_available()
    assert grader.grade_source(ATTENTION, ATTENTION.solution).isolation == tuple(layers)


def test_a_measurement_cannot_be_talked_out_of_its_number(grader):
    exercise = find_exercise("online_softmax")
    whole = (
        "import torch\n"
        "{lie}"
        "def online_softmax(blocks):\n"
        "    scores = torch.cat(list(blocks), -1)\n"
        "    top = scores.amax(-1)\n"
        "    return top, (scores - top[:, None]).exp().sum(-1)\n"
    )
    honest = grader.grade_source(exercise, whole.format(lie=""))
    assert (honest.passed, honest.case) == (False, "whole")
    lie = "torch.Tensor.numel = lambda self: 0\n"
    assert grader.grade_source(exercise, whole.format(lie=lie)).kind == "replaced"
