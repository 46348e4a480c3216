"""Plain hooks and gf.why give the same verdict, and random sets are like the named ones."""

import random
import sys
from pathlib import Path

import pytest
import torch

import glassformer as gf


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The modules of the benchmark import each other by their bare names."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "benchmarks"), *sys.path])


@pytest.mark.plain  # the last logits alone are computed, which the signature of a model forbids
@pytest.mark.parametrize(("how", "depth"), [("mean", 1), ("zero", 1), ("mean", 3)])
def test_plain_hooks_give_the_verdict(how, depth):
    from why_prompts import PlainAblation, choose_tokens, list_named, list_places

    removal = PlainAblation(gf.load("writer"), "The old man sat down by the")
    with torch.no_grad(), gf.watch(removal.model, residual=True) as trace:
        removal.model(removal.tokens)
    found = gf.why(trace, top=3, how=how, depth=depth, draws=0)
    places = list_places(trace)
    named = list_named(found, places)
    assert len(named) == len(found.named) >= 3
    none, ((kept, lost, *_),) = removal.measure([named], places, choose_tokens(trace), how)
    assert found.verdict is not None
    assert none == pytest.approx(found.verdict.none, abs=1e-4)
    assert kept == pytest.approx(found.verdict.carried, abs=1e-4)
    assert lost == pytest.approx(found.verdict.needed, abs=1e-4)


def test_random_sets_have_as_many_of_each_kind():
    from why_prompts import draw_alike

    places = [("decoder.0.self", h) for h in range(6)] + [
        (f"decoder.{i}.mlp", None) for i in range(4)
    ]
    named = [places[0], places[2], places[7]]
    drawn = draw_alike(places, named, random.Random(1))
    assert sorted(head is None for _, head in drawn) == [False, False, True]
    assert len(set(drawn)) == 3


def test_prompts_are_forty_and_differ():
    from why_prompts_texts import PROMPTS

    texts = [text for each in PROMPTS.values() for text in each]
    assert len(texts) == len(set(texts)) == 40


def test_a_table_of_one_score():
    from why_prompts import Score, summarize

    score = Score("facts", "a", "b", "c", 1.0, 4, "mean", "named", 4, 0.1, 0.75, 0.5, True, False)
    (row,) = summarize([score]).splitlines()[2:]
    assert row.startswith(
        "| 4 | mean | named | 4.0 | 0.75 ± 0.00 | 0.75 / 0.75 / 0.75 / 0.75 / 0.75 |"
    )
    assert row.endswith("| 100% | 0% | – | – | – |")
    others = [score._replace(of="random", kept=k / 10, lost=k / 10) for k in range(4)]
    row = summarize([score, *others]).splitlines()[2]
    assert row.endswith("| 100% | 0% | 100% | 100% | 100% |")
