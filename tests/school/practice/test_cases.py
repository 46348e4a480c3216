"""What authors write checks with: what is filled in by hand, and gradients."""

import pytest
import torch

from glassformer.school.practice import find_exercise
from glassformer.school.practice.cases import battery, blanks
from glassformer.school.practice.outcome import Outcome, outcomes_agree
from glassformer.school.practice.plain_values import to_plain
from glassformer.school.practice.random_inputs import Draw


def accepts(digits, right, filled):
    (case,) = blanks("x", digits=digits)
    return outcomes_agree(case, Outcome(to_plain(right)), Outcome(to_plain(filled)))


@pytest.mark.parametrize("filled", [(2, 8, 60), [2, 8, 60], [2, 8.0, 60]])
def test_whole_numbers_are_the_very_ones(filled):
    assert accepts(0, (2, 8, 60), filled)


@pytest.mark.parametrize("filled", [(2, 8, 64), (2, 8, 61), (2, 8, 60.001), (2, 9, 60), (2, 8)])
def test_other_whole_numbers_are_not(filled):
    assert not accepts(0, (2, 8, 60), filled)
    assert not accepts(0, 10000, 10001)


@pytest.mark.parametrize(
    ("right", "filled", "is_right"),
    [
        (3.1375, 3.14, True),
        (3.1375, 3.1375, True),
        (3.1375, 3.138, True),
        (3.1375, 3.13, False),
        (3.1375, 3.15, False),
        (3.85, 3.89, False),
        (0.9242, 0.93, False),
        (-0.4161, -0.42, True),
        (-0.4161, 0.42, False),
        (0.125, 0.12, True),
        (0.125, 0.13, True),
        (120.004, 120.0, True),
        (120.004, 120.02, False),
        (0.0, 0.0, True),
    ],
)
def test_decimals_are_right_as_far_as_they_are_asked_for(right, filled, is_right):
    assert accepts(2, right, filled) == is_right


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("attention_shapes", "out = (2, 8, 5, 32)", "out = (2, 8, 5, 33)"),
        ("shapes_transformer", "logits = (4, 7, 10000)", "logits = (4, 7, 10001)"),
        ("five_steps", "out = [1.26, 0.92]", "out = [1.26, 0.94]"),
    ],
)
def test_a_file_with_one_number_beside_the_right_one_fails(grader, name, right, wrong):
    exercise = find_exercise(name)
    report = grader.grade_source(exercise, f"{exercise.solution}\n{right}\n")
    assert report.passed
    report = grader.grade_source(exercise, f"{exercise.solution}\n{wrong}\n")
    assert (report.passed, report.kind, report.faults) == (False, "value", ())


def test_a_result_that_leads_nowhere_back_has_gradients_of_zero():
    inputs = {"x": torch.arange(6.0, dtype=torch.float64).reshape(2, 3)}
    (case,) = battery(Draw(1), lambda _: inputs, lambda m, x: m(x), variants=["gradient"])
    lost = case.call(lambda x: (2 * x).detach(), **inputs)
    kept = case.call(lambda x: 2 * x, **inputs)
    assert torch.equal(lost["x"], torch.zeros(2, 3, dtype=torch.float64))
    assert torch.allclose(kept["x"], 2 * torch.arange(1.0, 7).reshape(2, 3).cos().double())
