"""The tree of reasons as values: at every level, what is below a node adds up to it."""

import re

import pytest
import torch

import glassformer as gf
from glassformer.analysis import Reason, Why
from glassformer.languages import Language
from glassformer.render.charts.why import tree_of_why

ENGLISH = Language("en")
HAN = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def found() -> Why:
    model = gf.load("writer")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.tensor([model.tokenizer.encode("And God said unto")]))
    return gf.why(trace, top=6, depth=4, branches=2)


def test_sums_add_up_and_remainders_are_nodes(found) -> None:
    nodes = [node for _, node in tree_of_why(found, ENGLISH).root.walk()]
    sums = [node for node in nodes if node.children and node.is_sum]
    assert len(sums) > 10
    for node in sums:
        assert node.children[-1].is_rest
        size = max(abs(child.value) for child in node.children)
        assert sum(child.value for child in node.children) == pytest.approx(
            node.value, abs=4e-3 * size
        )
    assert {node.unit for node in nodes} == {"", "score"}


def test_a_look_is_its_weight_times_what_it_would_write(found) -> None:
    looks = [each for reason in found.reasons for each in reason.walk() if each.kind == "look"]
    named = {node.name: node for _, node in tree_of_why(found, ENGLISH).root.walk()}
    look = looks[0]
    note = named[f"{look.name} ({look.position})".replace(" ", "␣", 0)].note
    weight, value, product = (
        float(x.replace("−", "-")) for x in re.findall(r"[+−]?\d+\.\d+", note)[:3]
    )
    assert weight * value == pytest.approx(product, abs=2e-3)


def test_both_languages_have_the_same_tree(found) -> None:
    english, chinese = (tree_of_why(found, Language(code)) for code in ("en", "zh"))
    both = zip(english.root.walk(), chinese.root.walk(), strict=True)
    assert all(a[0] == b[0] and a[1].value == b[1].value for a, b in both)
    assert "the difference is still" in english.verdict and "差值仍有" in chinese.verdict
    assert HAN.search(chinese.title) and not HAN.search(english.title)


def test_what_was_not_tested_and_not_split_says_why() -> None:
    reason = Reason(kind="look", name="cat", value=0.5, position=3, weight=0.25, note="a gate")
    bare = Why(
        token="a",
        against="b",
        position="c",
        logit=1.0,
        reasons=[reason],
        rest=0.5,
        remainder=0.0,
        frozen=[],
        named=[],
        verdict=None,
        without_verdict="the model is gone",
    )
    tree = tree_of_why(bare, ENGLISH)
    assert "the model is gone" in tree.verdict
    look, rest = tree.root.children
    assert look.name == "cat (3)" and "a gate" in look.note and "0.25 × +2.0000" in look.note
    assert rest.is_rest and rest.value == 0.5
