"""What an intervention did: held against two runs by hand."""

from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.analysis.effects import measure_effect
from glassformer.errors import TraceError
from tracing.watched_architectures import built

L = 7


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(3)
    return built("llama", "sdpa")


@pytest.fixture(scope="module")
def trace(model: Any) -> gf.Trace:
    tokens = torch.randint(3, 30, (2, L), generator=torch.Generator().manual_seed(5))
    with gf.watch(model, residual=True) as trace, torch.no_grad():
        model(tokens)
    return trace


def test_divergence_and_probabilities_are_those_of_two_runs(model: Any, trace: gf.Trace) -> None:
    change = gf.Ablate("decoder.0.self", head=1)
    found = measure_effect(trace, gf.rerun(trace, change), position=4, top=3, sequence=1)
    tokens = trace.run.texts["tokens"].tokens
    with torch.no_grad():
        p = model(tokens).logits[1].softmax(-1)
        with gf.change(model, change):
            q = model(tokens).logits[1].softmax(-1)
    expected = (p * (p / q).log()).sum(-1)
    assert torch.allclose(found.divergence, expected, atol=1e-6)
    for i, shift in enumerate(found.tokens[:3]):
        token = int(p[4].topk(3).indices[i])
        assert shift.before == pytest.approx(float(p[4, token]), abs=1e-6)
        assert shift.after == pytest.approx(float(q[4, token]), abs=1e-6)
    assert max(t.after for t in found.tokens) == pytest.approx(float(q[4].max()), abs=1e-6)
    assert measure_effect(
        trace, gf.rerun(trace, change), position=None, sequence=1
    ).position == int(expected.argmax())


def test_parts_that_are_removed_changed_by_all_of_it(trace: gf.Trace) -> None:
    for change, names in (
        (gf.Ablate("decoder.0.mlp"), ["decoder.0.mlp"]),
        (gf.Skip("decoder.0"), ["decoder.0.self", "decoder.0.mlp"]),
        (gf.Scale("decoder.0.self", 3.0), []),
    ):
        found = {p.name: p.change for p in measure_effect(trace, gf.rerun(trace, change)).parts}
        assert all(found[name] == pytest.approx(1.0) for name in names)
    assert found["decoder.0.self"] == pytest.approx(2.0, rel=1e-5)
    assert "decoder.start" not in found and found["decoder.1.mlp"] > 0


def test_the_head_that_moved_most_is_named(trace: gf.Trace) -> None:
    cut = gf.rerun(trace, gf.Knockout("decoder.1.self", keys=0, head=2))
    found = measure_effect(trace, cut)
    best = found.most_changed_head()
    assert best is not None and best[:2] == ("decoder.1.self", 2) and best[2] > 0.01
    nothing = measure_effect(trace, gf.rerun(trace, gf.Scale("decoder.1.mlp", 1.0)))
    assert nothing.most_changed_head() is None and float(nothing.divergence.max()) == 0
    assert not nothing.parts


def test_runs_of_other_texts_are_refused(model: Any, trace: gf.Trace) -> None:
    with gf.watch(model, residual=True) as other, torch.no_grad():
        model(torch.tensor([[5, 6]]))
    with pytest.raises(TraceError, match="must read the same text"):
        measure_effect(trace, other)
    with pytest.raises(TraceError, match="There are 7 positions; got position=9"):
        measure_effect(trace, trace, position=9)
