"""Where no known fault explains a result: the part that went wrong, not the first `def`."""

import pytest
import torch

from glassformer.school.practice import find_exercise
from glassformer.school.practice.call_trail import Trail, stub_functions

MASK_RIGHT = "    return torch.arange(length) < lengths[:, None, None]\n"
PADDING = """import torch

def padding_mask(lengths, length):
{mask}
def attention(q, k, v, mask):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights @ v{odd}, weights
"""
CLASS = """import torch
from torch import nn

class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Linear(d_model, d_model) for _ in range(4))

    def attend(self, q, k, v):
        w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return w @ v, w

    def forward(self, x):
        B, L, C = x.shape
        q, k, v = (p(x).view(B, L, self.n_heads, -1).transpose(1, 2)
                   for p in (self.w_q, self.w_k, self.w_v))
        out, _ = self.attend(q, k, v)
        return self.w_o(out.transpose(1, 2).flatten(2)){odd}
"""


def graded(grader, name, source):
    report = grader.grade_source(find_exercise(name), source)
    assert (report.passed, report.faults) == (False, ())
    return report


def test_the_second_function_is_pointed_at_when_the_first_is_right(grader):
    source = PADDING.format(mask=MASK_RIGHT, odd=" * 1.01")
    assert graded(grader, "padding_mask", source).line == 9


def test_the_first_function_is_pointed_at_when_it_is_wrong(grader):
    odd = "    mask = torch.arange(length) < lengths[:, None, None]\n    return mask.roll(1, -1)\n"
    source = PADDING.format(mask=odd, odd="")
    assert graded(grader, "padding_mask", source).line == 5


def test_a_method_is_pointed_at_not_its_class(grader):
    assert graded(grader, "self_attention_class", CLASS.format(odd=" + 1")).line == 20


def test_a_part_that_is_called_wrongly_is_not_blamed(grader):
    """`attend` is right; it is given something else than the solution gives it."""
    source = CLASS.format(odd="").replace("self.attend(q, k, v)", "self.attend(q, k, v * v)")
    assert graded(grader, "self_attention_class", source).line == 19


def test_a_part_that_the_exercise_names_is_blamed_inside_of_another(grader):
    source = PADDING.format(mask=MASK_RIGHT, odd="")
    causal = (
        "import torch\n"
        "def causal_mask(n_queries, n_keys):\n"
        "    full = torch.ones(n_queries, n_keys, dtype=torch.bool)\n"
        "    mask = full.tril(n_keys - n_queries)\n"
        "    return mask if n_queries == n_keys or n_queries == 1 else mask.roll(1, 0)\n"
        "def causal_attention(q, k, v):\n"
        "    mask = causal_mask(q.shape[-2], k.shape[-2])\n"
        "    scores = q @ k.mT / q.shape[-1] ** 0.5\n"
        "    return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v\n"
    )
    assert grader.grade_source(find_exercise("padding_mask"), source).passed
    assert graded(grader, "causal_mask", causal).line == 5


def test_wrong_parameters_point_at_what_makes_them(grader):
    more = "self.n_heads = n_heads\n        self.more = nn.Parameter(torch.ones(1))"
    source = CLASS.format(odd="").replace("self.n_heads = n_heads", more)
    report = graded(grader, "self_attention_class", source)
    assert (report.case, report.line) == ("parameters", 5)


def test_steps_hold_copies_of_what_went_in_and_out():
    space = {"torch": torch}
    code = "def double(x):\n    x = x * 2\n    return x\ndef outer(x):\n    return double(x) + 1\n"
    exec(compile(code, "mine.py", "exec"), space)
    with Trail("mine.py") as trail:
        space["outer"](torch.tensor([1.0]))
    steps = [(s.name, s.line, s.depth, s.given[0].data[0], s.result.data[0]) for s in trail.steps]
    assert steps == [("double", 3, 1, 1, 2), ("outer", 5, 0, 1, 3)]


def test_a_trail_ends_by_itself_where_there_is_much_to_see():
    space = {}
    code = "def one(x):\n    return x\ndef many():\n    return [one(i) for i in range(999)]\n"
    exec(compile(code, "mine.py", "exec"), space)
    with Trail("mine.py") as trail:
        space["many"]()
    assert len(trail.steps) <= 32


@pytest.mark.parametrize("name", ["padding_mask", "self_attention_class"])
def test_the_interface_is_what_the_stub_names(name):
    names = stub_functions(find_exercise(name).stub)
    assert names & {"padding_mask", "SelfAttention.forward"}
