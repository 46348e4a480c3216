"""A learner's own weights, asked for with v = identity: which is first wrong, and why."""

import pytest
import torch

from glassformer.school.practice import find_exercise
from glassformer.school.practice.cases import Case
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import to_plain
from glassformer.school.practice.weights_probe import find_wrong_weight, make_probe

SCORES = torch.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]], dtype=torch.float64)
RIGHT = SCORES.softmax(-1)
MASKED = SCORES.masked_fill(torch.tensor([[False, False, True], [False] * 3]), -torch.inf)


def tell(right, wrong):
    found = find_wrong_weight(Outcome(to_plain(right)), Outcome(to_plain(wrong)))
    return found.key.rsplit(".", 1)[1], dict(found.values)


def test_what_is_first_wrong_is_told_with_its_reason():
    assert tell(RIGHT, RIGHT) == ("right", {})
    assert tell(RIGHT, RIGHT * 2) == ("sum", {"row": "0", "got": "2"})
    assert tell(MASKED.softmax(-1), RIGHT)[0] == "cell"
    hidden = MASKED.softmax(-1) + torch.tensor([[0.0, 0.0, 0.25], [0.0] * 3])
    assert tell(MASKED.softmax(-1), hidden) == ("masked", {"cell": "0, 2", "got": "0.25"})
    none = torch.zeros_like(RIGHT)  # dropout may leave nothing, with no mask at all
    assert tell(none, RIGHT)[0] == "empty"
    assert tell(RIGHT, (SCORES * 3).softmax(-1)) == ("scale", {"factor": "3"})
    assert tell(RIGHT, SCORES - 2)[0] == "negative"
    assert tell(RIGHT, SCORES.softmax(-2))[0] == "columns"
    assert tell(RIGHT, RIGHT * torch.nan) == ("nan", {"row": "0"})


def test_a_result_that_is_no_weights_is_not_read_as_weights():
    assert find_wrong_weight(Outcome(to_plain(SCORES)), Outcome(to_plain(RIGHT))) is None
    assert find_wrong_weight(Outcome(to_plain(RIGHT)), Outcome(failure="raised")) is None


def test_only_a_case_with_values_can_be_asked():
    v = torch.zeros(2, 3, 5)
    probe = make_probe(Case("values", lambda m: None, {"v": v}))
    assert torch.equal(probe.inputs["v"], torch.eye(3).expand(2, 3, 3))
    assert make_probe(Case("values", lambda m: None, {"x": v})) is None
    assert make_probe(Case("gradient", lambda m: None, {"v": v})) is None


@pytest.mark.parametrize(
    ("weights", "key"),
    [
        ("(scores.softmax(-1) ** 2.5 * 0.7)", "sum"),
        ("(scores * scores.cos() - scores.abs() ** 3).softmax(-1)", "cell"),
    ],
)
def test_weights_that_the_code_keeps_to_itself_are_read(grader, weights, key):
    """Two changes would be needed to repair each: none of them alone is the mistake."""
    source = (
        "def attention(q, k, v):\n"
        "    scores = q @ k.mT / q.shape[-1] ** 0.5\n"
        f"    return {weights} @ v\n"
    )
    report = grader.grade_source(find_exercise("attention"), source)
    told = report.explained[0] if key == "sum" else report.detail
    assert told.key == f"practice.weights.{key}"
    assert report.line == 3
