"""References of interventions: to this run, a second one, a direction between them, a bias."""

from typing import Any

import pytest
import torch
from torch import Tensor

import glassformer as gf
from glassformer.errors import GlassformerError, InterventionError
from glassformer.tracing import Trace
from glassformer.workbench.references import read_references
from letter_models import letter_model


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    model, found = letter_model("decoder", n_layers=2), []
    for tokens in ([[5, 9, 4]], [[7, 8, 11, 3, 2]]):
        with torch.no_grad(), gf.watch(model, residual=True) as trace:
            model(torch.tensor(tokens))
        found.append(trace)
    return found


def read(text: str, traces: list[Trace]) -> Any:
    return list(read_references(text, lambda: traces[0], lambda: traces[1]))


def test_runs_are_held_by_name(traces: list[Trace]) -> None:
    text = "ablate(decoder.0.self, how=mean, of=$this) & patch(decoder.1.self, trace=$second)"
    ablate, patch = read(text, traces)
    assert ablate.of is traces[0] and patch.trace is traces[1]


def test_each_direction_is_that_of_its_own_place(traces: list[Trace]) -> None:
    text = (
        "swap(decoder.0.self, mask=Causal() & Window(left=1)) & steer(decoder.0.mlp, "
        "vector=$direction) & steer(decoder.1.self, vector=$direction, factor=2)"
    )
    _, *steers = read(text, traces)
    for steer, place in zip(steers, ("decoder.0.mlp", "decoder.1.self"), strict=True):
        first, second = (trace.residual().after(place)[0].mean(0) for trace in traces)
        assert isinstance(steer.vector, Tensor) and torch.equal(steer.vector, second - first)


def test_alibi_has_a_slope_for_each_head(traces: list[Trace]) -> None:
    (swap,) = read("swap(decoder.1.self, bias=$alibi)", traces)
    heads = traces[0]["decoder.1.self"].n_heads
    assert torch.equal(swap.bias.slopes, gf.ALiBi.of_heads(heads).slopes)


def test_runs_are_made_only_where_they_are_named(traces: list[Trace]) -> None:
    def refuse() -> Trace:
        raise AssertionError("nobody has asked for it")

    assert str(read_references("skip(decoder.1)", refuse, refuse)) == "skip(decoder.1)"


@pytest.mark.parametrize("text", ["patch(decoder.1.self, trace=$third)", "$nothing"])
def test_unknown_references_are_named(text: str, traces: list[Trace]) -> None:
    with pytest.raises(InterventionError, match=r"\$this, \$second, \$direction, \$alibi; got"):
        read(text, traces)


@pytest.mark.parametrize("text", ["swap(decoder.9.self, bias=$alibi)", "$direction", "$alibi"])
def test_places_that_do_not_exist_are_sentences(text: str, traces: list[Trace]) -> None:
    with pytest.raises(GlassformerError):
        read(text, traces)
