"""Small changes of a learner's own code: one after which every check passes is the mistake."""

import re
import time
import warnings
from pathlib import Path

import pytest

from glassformer.languages import Language
from glassformer.school.practice import all_exercises, find_exercise
from glassformer.school.practice.messages import Interference, read_transcript
from glassformer.school.practice.report_texts import describe_report
from glassformer.school.practice.source_repairs import PARTLY, derive_repairs, find_repair

HELD_OUT = Path(__file__).parent / "held_out_second"
ONLINE = """import torch

def online_softmax(blocks):
    top = total = None
    for block in blocks:
        largest = block.amax(dim=-1)
        if top is None:
            top, total = largest, (block - largest[:, None]).exp().sum(-1)
            continue
        new = torch.maximum(top, largest)
        total = total * torch.exp({factor}) + torch.exp(block - new[:, None]).sum(-1)
        top = new
    return top, total
"""
RESIDUAL = """def post_norm(x, sublayer, norm):
    return norm(x + sublayer(x))


def pre_norm(x, sublayer, norm):
    return {pre}
"""
GREEDY = """import torch

def greedy(model, source, begin, end, pad, max_new):
    tokens = torch.full((len(source), 1), begin)
    finished = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(max_new):
        token = model(source, tokens)[:, -1].argmax(-1).masked_fill(finished, pad)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        {update}
        if finished.all():
            break
    return tokens[:, 1:]
"""
EINSUM = """import math
from torch import einsum

def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k, v = (einsum("bsc,hcd->bhsd", context, w) for w in (w_k, w_v))
    weights = (einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
    out = einsum("{out}", weights, v)
    return einsum("bhld,hdc->blc", out, w_o), weights
"""
GELU = """import math
import torch
from torch import nn

class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)

    def forward(self, x):
        z = self.up(x)
        z = {z}
        return self.down(z)
"""
SWIGLU = """import torch.nn.functional as F
from torch import nn

class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim, bias=False)
        self.up = nn.Linear(dim, hidden_dim, bias=False)
        self.down = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        z = {z}
        return self.down(z)
"""
FLASH = """import math
import torch

def flash_attention(q, k, v, block):
    top = torch.full(q.shape[:-1], -math.inf)
    total = torch.zeros(q.shape[:-1])
    out = torch.zeros(*q.shape[:-1], v.shape[-1])
    for n in range({n}):
        rows = slice(n * block, (n + 1) * block)
        scores = q @ k[..., rows, :].transpose(-2, -1) / math.sqrt(q.shape[-1])
        new = torch.maximum(top, scores.amax(-1))
        factor, weights = torch.exp(top - new), torch.exp(scores - new[..., None])
        total = total * factor + weights.sum(-1)
        out = out * factor[..., None] + weights @ v[..., rows, :]
        top = new
    return out / total[..., None], top + total.log()
"""
# The exercise, code in another shape than the solution's, the right part, the wrong one, its line.
WRONG = {
    "operands": ("online_softmax", ONLINE, {"factor": "top - new"}, {"factor": "new - top"}, 11),
    "nested calls": (
        "residual",
        RESIDUAL,
        {"pre": "x + sublayer(norm(x))"},
        {"pre": "x + norm(sublayer(x))"},
        6,
    ),
    "an update": (
        "greedy",
        GREEDY,
        {"update": "finished = finished | (token == end)"},
        {"update": "finished = token == end"},
        9,
    ),
    "a letter": ("einsum", EINSUM, {"out": "bhls,bhsd->bhld"}, {"out": "bhls,bhtd->bhld"}, 8),
    "brackets": (
        "gelu_feed_forward",
        GELU,
        {"z": "z * (1 + torch.erf(z / math.sqrt(2))) / 2"},
        {"z": "z * 1 + torch.erf(z / math.sqrt(2)) / 2"},
        12,
    ),
    "reach": (
        "swiglu",
        SWIGLU,
        {"z": "F.silu(self.gate(x)) * self.up(x)"},
        {"z": "F.silu(self.gate(x) * self.up(x))"},
        12,
    ),
    "rounding": (
        "flash_in_blocks",
        FLASH,
        {"n": "-(-k.shape[-2] // block)"},
        {"n": "k.shape[-2] // block"},
        8,
    ),
}
# Two mistakes in two functions: the checks of the first can be repaired alone.
TWO = """import torch

def accept_probability(p, q):
    return torch.minimum(p / q, torch.ones_like(q) * {most})

def replacement(p, q):
    lacking = torch.relu(p - q)
    return lacking / lacking.sum() if lacking.sum() > 0 else p

def verify(p, q, drafted, chances):
    for n, token in enumerate(drafted.tolist()):
        if chances[n] >= (p[n] / q[n])[token]:
            return n, {rest}
    return len(drafted), p[-1]
"""


@pytest.mark.parametrize("kind", WRONG)
def test_a_mistake_in_code_of_another_shape_is_named_with_its_line(grader, kind):
    name, form, right, wrong, line = WRONG[kind]
    assert grader.grade_source(find_exercise(name), form.format(**right)).passed
    # A seed, for where top is −∞ at first is left out of some draws, and a known mistake is named.
    report = grader.grade_source(find_exercise(name), form.format(**wrong), seed=1)
    assert [each.key for each in report.explained] == ["practice.repair.change"]
    assert report.line == line


def test_one_of_two_mistakes_is_named_by_the_checks_that_it_fails(grader):
    exercise = find_exercise("speculative_acceptance")
    right = {"most": "1", "rest": "replacement(p[n], q[n])"}
    assert grader.grade_source(exercise, TWO.format(**right)).passed
    wrong = {"most": "3", "rest": "(p[n] + q[n]) ** 3 / ((p[n] + q[n]) ** 3).sum()"}
    report = grader.grade_source(exercise, TWO.format(**wrong))
    (found,) = report.explained
    assert found.key == "practice.repair.partly.change" and report.line == 4
    assert found.values["right"].endswith("torch.ones_like(q))")


def test_the_sentence_shows_what_to_change_in_both_languages(grader):
    name, form, _, wrong, _ = WRONG["operands"]
    exercise = find_exercise(name)
    report = grader.grade_source(exercise, form.format(**wrong), seed=1)
    for code in ("en", "zh"):
        (sentence,) = describe_report(report, exercise, Language(code)).sentences
        assert "`total * torch.exp(new - top)`" in sentence
        assert "`total * torch.exp(top - new)`" in sentence


def test_every_change_is_valid_python_and_a_change():
    for path in sorted(HELD_OUT.glob("*/*.py"))[::12]:
        source = path.read_text("utf-8")
        sources = [repair.source for repair in derive_repairs(source)]
        assert len(set(sources)) == len(sources) > 0 and source not in sources
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # 2[0] is Python all the same
            for changed in sources[::3]:
                compile(changed, path.name, "exec")


def test_a_number_means_the_same_change_in_every_process():
    source = all_exercises()[0].solution
    repairs = list(derive_repairs(source))
    assert find_repair(source, 7) == repairs[7]
    assert find_repair(source, len(repairs)) is None


def test_code_that_runs_on_after_a_change_is_given_up(grader):
    """`n -= 1` turned round never ends; the search does."""
    source = (
        "import torch\n"
        "def softmax(scores):\n"
        "    n = 3\n"
        "    while n > 0:\n"
        "        n -= 1\n"
        "    e = torch.exp(scores.sin() - n)\n"
        "    return e / e.sum(dim=-1, keepdim=True)\n"
    )
    begun = time.perf_counter()
    report = grader.grade_source(find_exercise("stable_softmax"), source)
    assert not report.passed and not report.names_mistake
    assert time.perf_counter() - begun < 120  # the machine may be busy; without an end it is never


def test_what_is_filled_in_by_hand_is_not_tried_out(grader):
    exercise = find_exercise("attention_shapes")
    report = grader.grade_source(exercise, re.sub(r"\d+", "97", exercise.solution))
    assert not report.passed
    assert not any(each.key.startswith("practice.repair") for each in report.explained)


@pytest.mark.parametrize("repairs", [[1], [0, 1, 2], [-1, 3], [True, 1], ["1", 2], {}, [4000, 1]])
def test_what_is_no_repair_is_refused(repairs):
    line = str({"trail": [], "weights": None, "repairs": repairs}).replace("'", '"')
    sent = '{"ready": []}\n' + line.replace("None", "null").replace("True", "true") + "\n"
    with pytest.raises(Interference):
        read_transcript(sent.encode(), 1)


def test_every_repair_has_a_sentence_for_a_part_of_the_checks():
    say = Language("en").say
    values = dict.fromkeys(("wrong", "right", "step", "one", "other", "condition"), "x")
    for whole, part in PARTLY.items():
        assert "Every check passes" in say(whole, **values)
        assert "other checks still fail" in say(part, **values)


# Code, and changes of it that may pass the checks but are not what is wrong, or say it badly.
MISLEADING = {
    "x = (a - 1) + 1": ("(a - 1) + 0", "(a - 1) * 1"),
    "x = a[:, :2].T": ("a.transpose(-2, -1)", "a.T["),
    "x = a.shape[-1]": ("1 - a.shape[-1]", "-a.shape[-1]"),
    "done = a == 0\n    x = a.squeeze()": ("+ done",),
    "x = (a // b).sum()": ("((a / b))", "((a % b))"),
    "x = a - b": ("abs((a - b))",),
    "x = torch.ones_like(a) * b": ("torch.ones_like(a * b)",),
}


@pytest.mark.parametrize("code", MISLEADING)
def test_changes_that_mislead_are_not_tried(code):
    source = f"def f(a, b):\n    {code}\n    return x\n"
    shown = " ".join(str(repair.finding.values) for repair in derive_repairs(source))
    assert "'right'" in shown
    assert [text for text in MISLEADING[code] if text in shown] == []


@pytest.mark.parametrize(
    ("code", "right"),
    [
        ("x = a.squeeze()", "a.squeeze(dim=-1)"),
        ("x = a * b / (b - 1)", "a * (b - 1) / b"),
        ("x = torch.softmax(a, dim=-1)", "a / a.sum(-1, keepdim=True)"),
        ("x = a % b + 1", "a % b"),
        ("x = a ** -1 / 2", "a ** (-1 / 2)"),
    ],
)
def test_a_natural_change_is_tried(code, right):
    source = f"def f(a, b):\n    {code}\n    return x\n"
    assert right in [repair.finding.values.get("right") for repair in derive_repairs(source)]
