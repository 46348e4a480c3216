"""Parameters by name: lacking, too many, turned round; and one result among several."""

import pytest

from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.cases import Case
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.parameter_relations import find_other_parameters
from glassformer.school.practice.plain_values import to_plain

RIGHT = {"up.weight": [5, 3], "up.bias": [5]}


def compare(wrong, name="parameters"):
    case = Case(name, lambda m: None, {}, ("parameters",))
    found = find_other_parameters(case, Outcome(to_plain(RIGHT)), Outcome(to_plain(wrong)))
    if found is None:
        return None
    assert all(Language(code).say(found.key, **found.values) for code in ("en", "zh"))
    return found.key.rsplit(".", 1)[1], dict(found.values)


@pytest.mark.parametrize(
    ("wrong", "key", "values"),
    [
        ({}, "none", {}),
        ({"up.weight": [5, 3]}, "missing", {"names": "`up.bias`"}),
        ({**RIGHT, "scale": [1]}, "extra", {"others": "`scale`"}),
        (
            {"up.weight": [5, 3], "bias": [5]},
            "other",
            {"names": "`up.bias`", "others": "`bias`"},
        ),
        (
            {"up.weight": [3, 5], "up.bias": [5]},
            "turned",
            {"name": "up.weight", "expected": "(5, 3)", "got": "(3, 5)"},
        ),
        (
            {"up.weight": [5, 3], "up.bias": [7]},
            "size",
            {"name": "up.bias", "expected": "(5,)", "got": "(7,)"},
        ),
    ],
)
def test_other_parameters_are_named(wrong, key, values):
    assert compare(wrong) == (key, values)


def test_the_right_ones_other_cases_and_other_values_are_left_alone():
    assert compare(RIGHT) is None
    assert compare({}, name="values") is None
    assert compare({"up.weight": ["a"], "up.bias": [5]}) is None


def test_layers_without_biases_are_named_by_what_is_missing(grader):
    exercise = find_exercise("gelu_feed_forward")
    source = (
        "import torch\n"
        "from torch import nn\n"
        "class GELUFeedForward(nn.Module):\n"
        "    def __init__(self, dim, hidden_dim):\n"
        "        super().__init__()\n"
        "        self.up = nn.Linear(dim, hidden_dim, bias=False)\n"
        "        self.down = nn.Linear(hidden_dim, dim)\n"
        "    def forward(self, x):\n"
        "        z = self.up(x)\n"
        "        return self.down(z * torch.special.ndtr(z / 2))\n"
    )
    report = grader.grade_source(exercise, source)
    assert [each.key for each in report.explained] == ["practice.parameters.missing"]
    assert report.explained[0].values == {"names": "`up.bias`"}


def test_a_relation_of_the_first_wrong_result_is_named_though_others_are_wrong_otherwise(grader):
    """The mask is inverted; what attention makes of it has no relation to the right result."""
    source = (
        "import torch\n"
        "def causal_mask(n_queries, n_keys):\n"
        "    rows = torch.arange(n_keys - n_queries, n_keys)[:, None]\n"
        "    return torch.arange(n_keys)[None] > rows\n"
        "def causal_attention(q, k, v):\n"
        "    scores = (q @ k.mT).tanh()\n"
        "    mask = causal_mask(q.shape[-2], k.shape[-2])\n"
        "    return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ v\n"
    )
    report = grader.grade_source(find_exercise("causal_mask"), source)
    assert [each.key for each in report.explained] == ["practice.relation.inverted"]
