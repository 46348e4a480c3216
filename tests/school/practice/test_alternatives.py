"""Every right answer passes, also one that no author foresaw."""

import pytest

from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.report_texts import describe_report
from school.practice.alternatives import (
    ALTERNATIVES,
    CONFIG,
    DROPS,
    ENCODER,
    ENCODER_DROPS,
    HEADS,
    PAIR,
    PAIR_DROPS,
)
from school.practice.drawings import DRAWINGS


def passes(grader, name, source):
    exercise = find_exercise(name)
    report = grader.grade_source(exercise, source)
    assert report.passed, (describe_report(report, exercise, Language("en")), report.case)


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_another_right_answer_passes(grader, name):
    passes(grader, name, ALTERNATIVES[name])


@pytest.mark.parametrize("way", DRAWINGS)
def test_a_drawing_may_be_written_in_any_right_way(grader, way):
    passes(grader, "draw_the_flow", DRAWINGS[way])


@pytest.mark.parametrize("way", DROPS)
def test_weights_may_be_dropped_in_any_right_way(grader, way):
    passes(grader, "multi_head_linear", HEADS.format(drop=DROPS[way]))


@pytest.mark.parametrize("way", PAIR_DROPS)
def test_a_dropout_that_is_handed_in_may_be_used_in_any_right_way(grader, way):
    passes(grader, "attention_dropout", PAIR.format(drop=PAIR_DROPS[way]))


@pytest.mark.parametrize("way", ENCODER_DROPS)
def test_a_branch_may_be_dropped_in_any_right_way(grader, way):
    passes(grader, "encoder_layer", ENCODER.format(drop=ENCODER_DROPS[way]))


@pytest.mark.parametrize(("weights", "out"), [("p", "p"), ("weights_dropout.p", "out_dropout.p")])
def test_both_dropouts_may_be_functions(grader, weights, out):
    passes(grader, "multi_head_config", CONFIG.format(weights=weights, out=out))


@pytest.mark.parametrize(
    ("drop", "fault"),
    [
        ("w = F.dropout(w, self.dropout.p)", ("dropout_in_evaluation",)),
        ("pass", ("no_dropout",)),
        # not scaled up, and kept as often as it should be dropped: wrong, though nobody's fault
        ("w = w * (torch.rand_like(w) >= self.dropout.p) if self.training else w", ()),
        (
            "p = self.dropout.p\n"
            "        w = w * (torch.rand_like(w) < p) / (1 - p) if self.training and p else w",
            (),
        ),
    ],
)
def test_wrong_dropout_is_still_refused(grader, drop, fault):
    report = grader.grade_source(find_exercise("multi_head_linear"), HEADS.format(drop=drop))
    assert (report.passed, report.faults, report.case) == (False, fault, "dropout")
