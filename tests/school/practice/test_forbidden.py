"""What is to be written by hand cannot be called, by whatever way one comes to it."""

import ast
import textwrap

import pytest
import torch

from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.forbidden import CallGuard, Forbidden, find_forbidden, find_missing
from glassformer.school.practice.report_texts import describe_report

SOFTMAX = find_exercise("stable_softmax")
ATTENTION = find_exercise("attention")
NUMPY = find_exercise("self_attention_numpy")


def softmax(text, before=""):
    body = textwrap.indent(textwrap.dedent(text).strip(), "    ")
    return f"{before}\ndef softmax(scores):\n{body}\n"


def attention(text, before=""):
    body = textwrap.indent(textwrap.dedent(text).strip(), "    ")
    return f"{before}\ndef attention(q, k, v):\n{body}\n"


WAYS = {
    "plain": softmax("return torch.softmax(scores, -1)", "import torch"),
    "method": softmax("return scores.softmax(-1)"),
    "alias": softmax("return G.softmax(scores, -1)", "import torch.nn.functional as G"),
    "renamed": softmax("return own(scores, -1)", "from torch import softmax as own"),
    "module": softmax("return nn.Softmax(-1)(scores)", "from torch import nn"),
    "special": softmax("return torch.special.softmax(scores, -1)", "import torch"),
    "log": softmax("return scores.log_softmax(-1).exp()"),
    "logsumexp": softmax("return (scores - scores.logsumexp(-1, keepdim=True)).exp()"),
    "ops": softmax("return torch.ops.aten._softmax(scores, -1, False)", "import torch"),
    "getattr": softmax("return getattr(torch, 'softmax')(scores, -1)", "import torch"),
    "pieces": softmax("return getattr(torch, 'soft' + 'max')(scores, -1)", "import torch"),
    "pieces of a method": softmax("return getattr(scores, 'soft' + 'max')(-1)"),
    "pieces of ops": softmax(
        "return getattr(torch.ops.aten, '_soft' + 'max').default(scores, -1, False)",
        "import torch",
    ),
    "vars": softmax(
        "return vars(F)['soft' + 'max'](scores, -1)", "import torch.nn.functional as F"
    ),
    "attrgetter": softmax(
        "return attrgetter('nn.functional.soft' + 'max')(torch)(scores, -1)",
        "import torch\nfrom operator import attrgetter",
    ),
    "eval": softmax("return eval('scores.soft' + 'max(-1)')"),
    "swallowed": softmax(
        """
        try:
            return getattr(scores, 'soft' + 'max')(-1)
        except BaseException:
            return scores
        """
    ),
    "own name": "import torch\n" + softmax("return torch.softmax(scores, -1)"),
    "hidden in attention": softmax(
        """
        eye = torch.eye(scores.shape[-1]).to(scores)
        name = 'scaled_dot_product_' + 'attention'
        return getattr(F, name)(scores, eye.expand(*scores.shape[:-2], -1, -1), eye, scale=1.0)
        """,
        "import torch\nimport torch.nn.functional as F",
    ),
    "traced": softmax(
        "return torch.jit.trace(lambda x: getattr(x, 'soft' + 'max')(-1), scores)(scores)",
        "import torch",
    ),
}
OTHER_WAYS = {
    "plain": attention(
        "return F.scaled_dot_product_attention(q, k, v)", "import torch.nn.functional as F"
    ),
    "builtin": attention(
        "return getattr(torch._C._nn, 'scaled_dot_product_' + 'attention')(q, k, v)",
        "import torch",
    ),
    "ops": attention(
        "return getattr(torch.ops.aten, 'scaled_dot_product_' + 'attention')(q, k, v)",
        "import torch",
    ),
    "at import": "import torch\nfrom torch.nn.functional import scaled_dot_product_attention as a\n"
    + attention("return a(q, k, v)"),
    "module": attention(
        "return getattr(nn, 'Multihead' + 'Attention')(4, 1).double()(q, k, v)[0]",
        "from torch import nn",
    ).replace(
        "q, k, v)[0]",
        "q[..., :1].expand(-1, -1, 4), k[..., :1].expand(-1, -1, 4), "
        "k[..., :1].expand(-1, -1, 4))[0]",
    ),
    "ours": attention("return gf.attention(q, k, v)", "import glassformer as gf"),
    "ours, from": attention(
        "return a(q, k, v)", "from glassformer.fromscratch import attention as a"
    ),
    "ours, in the function": attention("return __import__('glass' + 'former').attention(q, k, v)"),
    "ours, by importlib": attention(
        "return importlib.import_module('glass' + 'former').attention(q, k, v)", "import importlib"
    ),
    "ours, by its spec": attention(
        "return importlib.util.find_spec('glass' + 'former')", "import importlib.util"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_softmax_by_hand_means_by_hand(grader, way):
    report = grader.grade_source(SOFTMAX, WAYS[way])
    assert (report.passed, report.kind) == (False, "forbidden")
    said = describe_report(report, SOFTMAX, Language("en")).sentences[0]
    assert "what this exercise asks you to write yourself" in said


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_attention_by_hand_means_by_hand(grader, way):
    report = grader.grade_source(ATTENTION, OTHER_WAYS[way])
    assert (report.passed, report.kind) == (False, "forbidden")


def test_the_line_is_told_from_the_source_and_from_the_run(grader):
    assert grader.grade_source(SOFTMAX, WAYS["plain"]).line == 3
    assert grader.grade_source(SOFTMAX, WAYS["pieces"]).line == 3


def test_modules_that_were_loaded_before_are_not_lying_about(grader):
    source = attention("import sys\nreturn sys.modules['glass' + 'former'].attention(q, k, v)")
    report = grader.grade_source(ATTENTION, source)
    assert (report.kind, report.finding.values["error"]) == ("raised", "KeyError")


@pytest.mark.parametrize(
    "reading",
    [
        "open(path).read()",
        "__import__('pathlib').Path(path).read_text()",
        "__import__('os').open(path, 0)",
        "__import__('linecache').getlines(path)",
    ],
)
def test_solutions_cannot_be_read(grader, reading):
    path = str(ATTENTION.folder / "solution.py")
    source = attention(f"path = {path!r}\nexec({reading})\nreturn q")
    report = grader.grade_source(ATTENTION, source)
    assert not report.passed and report.kind == "blocked"


@pytest.mark.parametrize(
    "way", ["import torch", "from torch import nn", "T = __import__('to' + 'rch')"]
)
def test_numpy_means_numpy(grader, way):
    source = f"import numpy as np\n{way}\ndef self_attention(Q, K, V):\n    return Q\n"
    report = grader.grade_source(NUMPY, source)
    assert (report.kind, report.finding.values["name"], report.line) == ("forbidden", "torch", 2)


def test_a_function_of_ones_own_may_have_the_name(grader):
    source = (
        "import math\n"
        "def softmax(x):\n"
        "    e = (x - x.amax(-1, keepdim=True)).exp()\n"
        "    return e / e.sum(-1, keepdim=True)\n"
    )
    assert grader.grade_source(SOFTMAX, source).passed
    inner = (
        "class Own:\n    def softmax(self, x):\n        e = (x - x.amax(-1, keepdim=True)).exp()\n"
    )
    inner += "        return e / e.sum(-1, keepdim=True)\n"
    inner += "def softmax(scores):\n    return Own().softmax(scores)\n"
    assert grader.grade_source(SOFTMAX, inner).passed


def test_an_attribute_of_ones_own_may_have_the_name():
    tree = ast.parse("class A:\n    def f(self):\n        self.linear = 3\n        self.linear + 1")
    assert find_forbidden(tree, ["linear"]) is None
    assert find_forbidden(ast.parse("self.linear = nn.Linear(3, 3)"), ["linear"]) == ("Linear", 1)


def test_what_is_not_forbidden_runs():
    with CallGuard(["attention"]) as stop:
        torch.ones(2, 3).softmax(-1)
    assert stop.seen == []
    with CallGuard(["tril"]), pytest.raises(Forbidden, match="tril"):
        torch.ones(2, 2).tril()


def test_required_names():
    tree = ast.parse("import torch\ntorch.einsum('ij->ji', x)")
    assert find_missing(tree, ["einsum"]) is None
    assert find_missing(tree, ["rearrange"]) == "rearrange"
    assert find_forbidden(tree, ["softmax"]) is None
