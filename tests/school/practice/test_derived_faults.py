"""Mistakes that no author wrote down: edits derived from a solution, tried like known faults."""

import pytest

from glassformer.school.practice import all_exercises, find_exercise
from glassformer.school.practice.attention_faults import derive_attention_faults
from glassformer.school.practice.general_faults import derive_general_faults
from glassformer.school.practice.name_faults import derive_wrong_layers
from glassformer.school.practice.solution_edits import Edit, SolutionTree, apply_edits, find_edit

ATTENTION = """import math
import torch

def attention(q, k, v):
    scores = {scores}
    weights = {weights}
    return {out}
"""
RIGHT = {
    "scores": "q @ k.mT / math.sqrt(q.shape[-1])",
    "weights": "torch.softmax(scores, -1)",
    "out": "weights @ v",
}
PROJECTED = """from torch import nn

class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (
            nn.Linear(dim, head_dim, bias=False) for _ in range(3)
        )

    def forward(self, x):
        q, k, v = self.q_proj(x), self.q_proj(x), self.v_proj(x)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return weights @ v, weights
"""


def derive(source):
    tree = SolutionTree(source)
    yield from derive_wrong_layers(tree)
    yield from derive_attention_faults(tree)
    yield from derive_general_faults(tree)


@pytest.mark.parametrize("name", ["attention", "multi_head_config", "beam", "rotary"])
def test_every_derived_source_is_valid_python(name):
    solution = find_exercise(name).solution
    sources = [apply_edits(solution, fault.edits) for fault in derive(solution)]
    assert len(sources) > 100
    for source in sources:
        compile(source, "fault.py", "exec")
        assert source != solution


def test_there_are_mistakes_for_every_exercise_that_is_code():
    for exercise in all_exercises():
        if exercise.kind in ("code", "fault"):
            assert sum(1 for _ in derive(exercise.solution)) >= 30, exercise.name


def test_edits_that_meet_are_not_made():
    assert apply_edits("é + b", [Edit(0, 2, "a")]) == "a + b"
    assert apply_edits("abc", [Edit(0, 2, "x"), Edit(1, 3, "y")]) is None


def test_an_edit_is_as_small_as_it_can_be():
    one = find_edit("scores / √D", "scores * √D")
    assert apply_edits("scores / √D", [one]) == "scores * √D"


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"scores": "q @ k.mT * math.sqrt(q.shape[-1])"}, "scale.times"),
        ({"weights": "torch.softmax(scores, -1) / q.shape[-1] ** 0.5",
          "scores": "q @ k.mT"}, "scale.after"),
        ({"weights": "torch.softmax(scores, 0)"}, "softmax.batch"),
        ({"weights": "scores.softmax(-1).softmax(-1)"}, "softmax.twice"),
        ({"out": "(weights @ v) / k.shape[-2]"}, "softmax.mean"),
        ({"out": "torch.softmax(scores, -1).detach() @ v"}, "softmax.detached"),
    ],
)  # fmt: skip
def test_a_mistake_of_attention_is_named_without_a_list(grader, changed, key):
    source = ATTENTION.format(**{**RIGHT, **changed})
    report = grader.grade_source(find_exercise("attention"), source)
    assert report.faults == () and report.names_mistake
    assert [each.key for each in report.explained] == [f"practice.derived.{key}"]


def test_a_layer_in_the_place_of_another_is_named(grader):
    report = grader.grade_source(find_exercise("single_head_linear"), PROJECTED)
    (found,) = report.explained
    assert found.values == {"wrong": "self.q_proj", "right": "self.k_proj"}
    assert report.line == 11


def test_a_known_and_a_derived_mistake_are_named_together(grader):
    changed = {"scores": "q @ k.mT", "weights": "scores.sigmoid()"}
    report = grader.grade_source(
        find_exercise("attention"), ATTENTION.format(**{**RIGHT, **changed})
    )
    assert report.faults == ("no_scaling",)
    assert [each.key for each in report.explained] == ["practice.derived.softmax.sigmoid"]


def test_nan_alone_is_named_by_what_repairs_it_and_not_by_what_looks_alike(grader):
    source = (
        "import torch\n"
        "def causal_bias(length):\n"
        "    return torch.full((length, length), -torch.inf).triu(1)\n"
        "def causal_weights(scores):\n"
        "    return (scores - causal_bias(scores.shape[-1]).to(scores)).softmax(-1)\n"
    )
    report = grader.grade_source(find_exercise("causal_bias"), source)
    (found,) = report.explained
    assert found.key == "practice.repair.change" and report.line == 5
    assert "scores + causal_bias" in found.values["right"]


def test_nan_alone_names_nothing_that_could_be_several_mistakes(grader):
    """No small change repairs tan, and NaN looks like the result of many other mistakes."""
    source = (
        "import torch\n"
        "def causal_bias(length):\n"
        "    return torch.full((length, length), -torch.inf).triu(1)\n"
        "def causal_weights(scores):\n"
        "    bias = causal_bias(scores.shape[-1]).to(scores)\n"
        "    return ((scores - bias).tan() * (bias - bias)).softmax(-1)\n"
    )
    report = grader.grade_source(find_exercise("causal_bias"), source)
    assert (report.kind, report.explained) == ("nan", ())


def test_a_chance_hit_in_one_case_names_nothing(grader):
    """√S = ∛D for S = 4 and D = 8: what agrees once is no explanation."""
    source = "def scaled_scores(q, k):\n    return q @ k.mT * q.shape[-1] ** (-1 / 3)\n"
    for seed in range(6):
        report = grader.grade_source(find_exercise("scaling"), source, seed=seed)
        assert report.faults == ()
        assert [each.values for each in report.explained] == [{"power": "1/3"}]


def test_what_two_changes_of_a_value_explain_is_not_named_by_one(grader):
    """Equal scores follow from the last key in place of all, and from the first just as well."""
    source = """import math
import torch

def padding_mask(lengths, S):
    return torch.arange(S) < lengths[:, None, None]

def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(mask, 1e4).softmax(dim=-1) @ v
"""
    report = grader.grade_source(find_exercise("repair_inverted_mask"), source)
    assert report.kind == "value" and report.explained == ()


def test_a_sentence_shows_code_where_a_name_or_a_number_says_nothing():
    """Variables of the solution are unknown to a learner, and so is which 1 is meant."""
    source = (
        "def f(q, v, unembed):\n"
        "    size = q.square().mean()\n"
        "    best = q[: q.shape[-1]]\n"
        "    chosen = [each for each in best]\n"
        "    return q / size + best.shape[1], chosen\n"
    )
    said = [fault.finding for fault in derive_general_faults(SolutionTree(source))]
    names = [dict(each.values) for each in said if each.key == "practice.derived.name.wrong"]
    assert {"wrong": "v.shape[-1]", "right": "q.shape[-1]"} in names
    assert {"wrong": "[each for each in size]", "right": "[each for each in best]"} in names
    parts = [each.values["part"] for each in said if each.key == "practice.derived.part.missing"]
    assert "q.square().mean()" in parts and "size" not in parts
    numbers = [each.values["right"] for each in said if each.key == "practice.derived.number"]
    assert any("best.shape[1]" in number for number in numbers)


def test_a_mask_of_the_wrong_corner_is_not_called_one_too_many(grader):
    source = (
        "import torch\n"
        "def causal_mask(n_queries, n_keys):\n"
        "    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)\n"
        "def causal_attention(q, k, v):\n"
        "    future = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)\n"
        "    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf)\n"
        "    return scores.softmax(-1) @ v\n"
    )
    report = grader.grade_source(find_exercise("causal_mask"), source)
    assert [each.key for each in report.explained] == ["practice.derived.mask.topleft"]
