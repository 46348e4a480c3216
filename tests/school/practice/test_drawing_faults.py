"""Wrong arrows that no author foresaw are named in one sentence, in the drawing they are in."""

import pytest

from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.report_texts import describe_report
from school.practice.drawings import DRAWINGS

EXERCISE = find_exercise("draw_the_flow")
RIGHT = DRAWINGS["several nodes, chains"]
CHAIN = "q, k → scores → scale → mask → softmax → out"


def grade(grader, *edits):
    source = RIGHT
    for find, replace in edits:
        assert source.count(find) == 1
        source = source.replace(find, replace)
    report = grader.grade_source(EXERCISE, source)
    assert not report.passed
    return report


def sentences(report, code="en"):
    return describe_report(report, EXERCISE, Language(code)).sentences


WRONG = [
    ("v → out", "out → v", "is reversed: it leads from `v` to `out`"),
    ("v → out", "", "is missing: `out` is also computed from `v`"),
    ("v → out", "v → out\nq → softmax", "too many: `softmax` is not computed directly from `q`"),
    ("v → out", "v → mask", "leads to the wrong node: `v` is needed for `out`, not for `mask`"),
    ("v → out", "k → out", "starts at the wrong node: `out` is computed from `v`, not from `k`"),
    ("v → out", "v → output", "no node `output`. Its nodes are x, q, k, v, scores, scale, mask"),
    ("v → out", "v : out", "not an arrow between nodes: `v : out`"),
    ("q, k → scores", "q, k", "The node `scores` is missing"),
    ("x → self_attention,", "x →", "`self_attention` is also computed from `x`"),
    ("context → cross_k, cross_v", "context → cross_attention", "for `cross_k`, not for"),
    ("feed_forward → add_3 → norm_3", "feed_forward → norm_3 → add_3", "from `add_3` to `norm_3`"),
]


@pytest.mark.parametrize(("find", "replace", "words"), WRONG)
def test_an_unforeseen_arrow_is_named(grader, find, replace, words):
    report = grade(grader, (find, replace))
    (sentence,) = sentences(report)
    assert (report.kind, report.faults) == ("fault", ())
    assert words in sentence
    (chinese,) = sentences(report, "zh")
    assert chinese != sentence and all(name in chinese for name in words.split("`")[1::2])


def test_nodes_in_each_others_place(grader):
    report = grade(grader, (CHAIN, "q, k → softmax → scale → mask → scores → out"))
    assert sentences(report) == (
        "`scores` and `softmax` are in each other's place. Exchange the two names.",
    )


def test_all_arrows_reversed(grader):
    report = grade(
        grader,
        ("x → q, k, v", "x ← q, k, v"),
        (CHAIN, CHAIN.replace("→", "←")),
        ("v → out", "v ← out"),
    )
    (sentence,) = sentences(report)
    assert sentence.startswith("All arrows of draw_attention are reversed.")


KNOWN = [
    (CHAIN, "q, k → scores → scale → softmax → mask → out", "mask_after_softmax"),
    (CHAIN, "q, k → scores → mask → softmax → out", "no_scale"),
    ("v → out", "softmax ← v", "v_before_softmax"),
    ("context → cross_k, cross_v", "context → cross_v\nnorm_1 → cross_k", "cross_k_from_decoder"),
    ("norm_1 → cross_q, add_2", "norm_1 → cross_q\nadd_1 → add_2", None),
]


@pytest.mark.parametrize(("find", "replace", "fault"), KNOWN)
def test_a_known_fault_in_another_hand(grader, find, replace, fault):
    report = grade(grader, (find, replace))
    assert report.faults == ((fault,) if fault else ())
    assert len(sentences(report)) == 1


def test_a_fault_in_each_drawing(grader):
    report = grade(grader, ("mask → ", ""), ("x → self_attention, add_1", "x → self_attention"))
    assert report.faults == ("no_mask", "no_residual_self")


def test_a_known_fault_beside_an_unfinished_drawing(grader):
    decoder = RIGHT.index("def draw_decoder_layer")
    stub = EXERCISE.stub[EXERCISE.stub.index("def draw_decoder_layer") :]
    source = RIGHT[:decoder].replace("mask → ", "") + stub
    assert grader.grade_source(EXERCISE, source).faults == ("no_mask",)


def test_the_line_is_that_of_the_drawing(grader):
    lines = RIGHT.splitlines()
    for edit, name in ((KNOWN[0], "draw_attention"), (KNOWN[3], "draw_decoder_layer")):
        report = grade(grader, edit[:2])
        assert lines[report.line - 1] == f"def {name}():"


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ('""', "without arrows"),
        ('"# later"', "without arrows"),
        ('["x -> q"]', "as text, one arrow per line; it returns list of 1 (str)"),
        ("3", "it returns int"),
        ("None", "returns None"),
        ("1 / 0", "raises ZeroDivisionError"),
    ],
)
def test_what_is_no_drawing(grader, returned, words):
    source = f"{RIGHT}\ndef draw_attention():\n    return {returned}\n"
    report = grader.grade_source(EXERCISE, source)
    (sentence,) = sentences(report)
    assert words in sentence
