"""The mistake by its name: in code that a learner might write, not in edits of our own solution."""

import pytest

from glassformer.languages import Language
from glassformer.school.practice import all_exercises, find_exercise
from glassformer.school.practice.cases import Case
from glassformer.school.practice.exercise import Fault
from glassformer.school.practice.fault_naming import (
    code_lines,
    find_fault_line,
    find_faults,
    merge_edits,
)
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import to_plain
from glassformer.school.practice.report_texts import checklist, describe_report

NUMPY = """
import numpy as np

def soft(x, axis):
    x = x - np.max(x, axis=axis, keepdims=True)
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)

def self_attention(Q, K, V):
    s = np.dot(Q, K.transpose()){scale}
    return {weights} @ V
"""
SCALE = " / np.sqrt(Q.shape[1])"
# Answers that well-known practice sites accept: their tests are saturated.
ACCEPTED_ELSEWHERE = {
    "no_scaling": NUMPY.format(scale="", weights="soft(s, 1)"),
    "divided_by_width": NUMPY.format(scale=" / Q.shape[1]", weights="soft(s, 1)"),
    "argmax": NUMPY.format(scale=SCALE, weights="np.eye(len(s))[s.argmax(1)]"),
    "wrong_axis": NUMPY.format(scale=SCALE, weights="soft(s, 0)"),
}
HEADS = """
import numpy as np

def one(q, k, v):
    s = q @ k.T{scale}
    e = np.exp(s - s.max({axis}, keepdims=True))
    return {weights} @ v

def multi_head_attention(Q, K, V, n_heads):
    parts = [np.split(x, n_heads, axis=1) for x in (Q, K, V)]
    return np.concatenate([one(q, k, v) for q, k, v in zip(*parts)], axis=1)
"""
WHOLE = {
    "no_scaling": HEADS.format(scale="", axis=1, weights="(e / e.sum(1, keepdims=True))"),
    "argmax": HEADS.format(
        scale=" / q.shape[1] ** .5", axis=1, weights="np.eye(len(s))[s.argmax(1)]"
    ),
    "wrong_axis": HEADS.format(
        scale=" / q.shape[1] ** .5", axis=0, weights="(e / e.sum(0, keepdims=True))"
    ),
}


@pytest.mark.parametrize("name", ACCEPTED_ELSEWHERE)
def test_self_attention_that_peers_accept_is_caught_and_named(grader, name):
    exercise = find_exercise("self_attention_numpy")
    report = grader.grade_source(exercise, ACCEPTED_ELSEWHERE[name])
    assert (report.passed, report.kind, report.faults) == (False, "fault", (name,))


@pytest.mark.parametrize("name", WHOLE)
def test_multi_head_attention_that_peers_accept_is_caught_and_named(grader, name):
    exercise = find_exercise("multi_head_attention_numpy")
    report = grader.grade_source(exercise, WHOLE[name])
    assert (report.passed, report.kind, report.faults) == (False, "fault", (name,))


@pytest.mark.parametrize("name", ["self_attention_numpy", "multi_head_attention_numpy"])
def test_the_right_answer_in_other_words_passes(grader, name):
    right = {
        "self_attention_numpy": NUMPY.format(scale=SCALE, weights="soft(s, 1)"),
        "multi_head_attention_numpy": HEADS.format(
            scale=" / q.shape[1] ** .5", axis=1, weights="(e / e.sum(1, keepdims=True))"
        ),
    }
    assert grader.grade_source(find_exercise(name), right[name]).passed


def test_the_line_is_the_learners(grader):
    exercise = find_exercise("attention")
    source = (
        "# divides by the width, sqrt forgotten\n"
        "def attention(q, k, v):\n"
        '    """softmax(q kᵀ / √D) v"""\n'
        "    D = q.shape[-1]\n"
        "    raw = q @ k.transpose(-2, -1)\n"
        "    logits = raw / D\n"
        "    return logits.softmax(dim=-1) @ v\n"
    )
    report = grader.grade_source(exercise, source)
    assert (report.faults, report.line) == (("divided_by_width",), 6)
    description = describe_report(report, exercise, Language("zh"))
    assert description.sentences == ("你用 D 去除分数了；应当除以 D 的平方根。",)
    assert description.where == "请看 05_attention.py 第 6 行。"


def test_two_mistakes_at_once_are_both_told(grader):
    exercise = find_exercise("attention")
    source = "def attention(q, k, v):\n    return (q @ k.mT).softmax(-2) @ v\n"
    report = grader.grade_source(exercise, source)
    assert set(report.faults) == {"no_scaling", "softmax_over_queries"}
    description = describe_report(report, exercise, Language("en"))
    assert description.sentences[0] == "Two mistakes at once:" and len(description.sentences) == 3


def test_a_mistake_beside_a_known_one_does_not_hide_it(grader):
    exercise = find_exercise("attention")
    source = (
        "def attention(q, k, v):\n"
        "    if q.dim() == 4:\n"
        "        return None\n"
        "    return (q @ k.mT).softmax(-1) @ v\n"
    )
    assert grader.grade_source(exercise, source).faults == ("no_scaling",)


def test_what_no_fault_explains_is_worked_out(grader):
    exercise = find_exercise("attention")
    source = (
        "import math\n"
        "def attention(q, k, v):\n"
        "    out = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v\n"
        "    out = out.clone()\n"
        "    out[..., 1, 0] += 1\n"
        "    return out\n"
    )
    report = grader.grade_source(exercise, source)
    assert (report.kind, report.faults) == ("fault", ())
    values = report.finding.values
    assert values["cell"] == "out[0, 1, 0]" and values["off"] == "1"
    yours, expected = report.tables["yours"], report.tables["expected"]
    assert yours[1][0] == pytest.approx(expected[1][0] + 1)
    assert yours[0] == pytest.approx(expected[0])


def test_a_fault_is_not_named_that_fails_where_the_learner_does_not(grader):
    # Trained on a copy: wrong only where the words of a trained model are counted, as many are.
    exercise = find_exercise("translate_letters")
    source = exercise.solution.replace(
        "    optimizer =",
        "    from copy import deepcopy\n\n    model = deepcopy(model)\n    optimizer =",
    )
    report = grader.grade_source(exercise, source)
    assert [each.name for each in report.checked if not each.held] == ["letters"]
    assert (report.kind, report.faults) == ("text", ())


def test_dear_cases_are_run_only_with_faults_that_cheap_ones_leave():
    cases = [Case("values", lambda m: None), Case("large", lambda m: None)]
    right, wrong = Outcome(to_plain(1.0)), Outcome(to_plain(2.0))
    faults = [Fault(name=name, source=name, text={}) for name in ("a\n", "b\n", "c\n")]
    run = []

    def load(source):
        def outcome(number):
            run.append((source, number))
            return wrong

        return outcome

    got = [right, wrong]
    assert find_faults(cases, [right, right], got, faults, load, "solution\n") == ()
    assert {number for _, number in run} == {0}


def test_a_planted_fault_is_not_told_but_other_faults_are(grader):
    exercise = find_exercise("floor_division")
    report = grader.grade_source(exercise, exercise.stub)
    assert (report.faults, report.names_faults, report.kind) == (
        ("floor_division",),
        False,
        "value",
    )
    assert "//" not in describe_report(report, exercise, Language("en")).sentences[0]
    other = exercise.stub.replace(" // math.sqrt(D)", "")
    report = grader.grade_source(exercise, other)
    assert (report.faults, report.names_faults, report.kind) == (("no_scaling",), True, "fault")


def test_numbers_by_hand_are_never_given_away(grader):
    exercise = find_exercise("five_steps")
    half = exercise.stub.replace("scaled = [..., ..., ...]", "scaled = [1.56, 3.85, 3.0]")
    report = grader.grade_source(exercise, half)
    assert report.kind == "value" and report.tables is None
    assert describe_report(report, exercise, Language("en")).sentences == (
        "scaled[2] = 3 is too small.",
    )
    by_width = exercise.stub.replace("scaled = [..., ..., ...]", "scaled = [0.2, 0.48, 0.39]")
    assert grader.grade_source(exercise, by_width).faults == ("divided_by_width",)
    filled = (
        "scaled = (1.56, 3.85, 3.14)\nexps = [0.1, 1, 0.49]\n"
        "weights = [0.06, 0.63, 0.31]\nout = [1.26, 0.92]\n"
    )
    assert grader.grade_source(exercise, filled).passed


def test_a_prediction_is_answered_by_the_measurement(grader):
    exercise = find_exercise("predict_width")
    assert grader.grade_source(exercise, exercise.stub).measured is None
    assert grader.grade_source(exercise, "answer = 'x'").kind == "choice"
    wrong = grader.grade_source(exercise, "answer = 'c'")
    assert (wrong.passed, wrong.faults) == (False, ("shrinks",))
    right = grader.grade_source(exercise, "answer = 'b'")
    assert right.passed
    for report in (wrong, right):
        assert report.measured["÷ 1, D = 1024"] > 0.9 > report.measured["÷ √D, D = 1024"]


def test_every_case_has_a_label_in_both_languages(grader):
    exercise = find_exercise("stable_softmax")
    report = grader.grade_source(exercise, exercise.solution)
    labels = [label for label, held in checklist(report, exercise, Language("zh")) if held]
    assert "各行相差悬殊" in labels


def test_edits_are_merged_only_where_they_do_not_meet():
    assert merge_edits("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n") == "A\nb\nC\n"
    assert merge_edits("a\nb\n", "A\nb\n", "X\nb\n") is None


def test_comments_and_docstrings_are_no_lines_to_look_at():
    source = '# softmax\ndef f(x):\n    """softmax"""\n    return x.softmax(-1)  # softmax\n'
    assert list(code_lines(source)) == [2, 4]
    fault = next(f for f in find_exercise("attention").faults() if f.name == "softmax_over_queries")
    assert find_fault_line(fault, find_exercise("attention").solution, source, ["f"]) == 4


def test_there_are_many_faults():
    exercises = all_exercises()
    assert len(exercises) >= 18
    assert sum(len(exercise.faults()) for exercise in exercises) >= 100
    assert len({exercise.name for exercise in exercises}) == len(exercises)
    assert len({exercise.number for exercise in exercises}) == len(exercises)
