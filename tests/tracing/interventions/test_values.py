"""Interventions as values: joined, printed, and refused where they make no sense."""

import pytest
import torch

import glassformer as gf
from glassformer.errors import InterventionError
from glassformer.tracing.interventions.numbers import resolve_numbers
from glassformer.tracing.interventions.values import Changes


def test_interventions_are_joined_and_printed() -> None:
    change = gf.Ablate("decoder.3.self", head=[0, 2]) & gf.Skip("decoder.5")
    change = change & (gf.Scale("decoder.1.mlp", 2.0, positions=slice(3, None)))
    assert str(change) == (
        "ablate(decoder.3.self, head=0 2) & skip(decoder.5) & "
        "scale(decoder.1.mlp, factor=2.0, positions=3:)"
    )
    assert len(change) == 3 and repr(change) == f"<{change}>"


@pytest.mark.plain
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gf.Ablate("decoder.3.self", how="none"), "zero, mean or resample"),
        (lambda: gf.Scale("decoder.3.self", float("nan")), "factor must be a finite number"),
        (lambda: gf.Steer("decoder.3.self", torch.tensor([1.0, float("inf")])), "must be finite"),
        (lambda: gf.Steer("decoder.3.self", torch.tensor([1, 2])), "tensor of real numbers"),
        (lambda: gf.Patch("decoder.3.self", torch.zeros(3)), "takes its values from a trace"),
        (lambda: gf.Patch("decoder.3.self", gf.Trace(), 1, what="state"), "has no heads"),
        (lambda: gf.Swap("decoder.3.self"), "must name what to swap"),
        (lambda: gf.Swap("decoder.3.self", positions="all"), "positions must be 'none'"),
        (lambda: gf.Skip("decoder"), "by stack and layer"),
        (lambda: gf.Freeze("decoder.3.self", 0.5), "a tensor or a trace"),
        (lambda: Changes.of(["ablate"]), "such as gf.Ablate"),
        (lambda: Changes.of("ablate"), "such as gf.Ablate; got str"),
        (lambda: gf.Ablate("decoder").layer, "a stack, a layer and a part"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(make, said: str) -> None:
    with pytest.raises(InterventionError, match=said):
        make()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (gf.Ablate("decoder.3.self"), gf.Patch("decoder.3.self", gf.Trace())),
        (gf.Ablate("decoder.3.self", head=1), gf.Ablate("decoder.3.self", head=[1, 2], how="mean")),
        (gf.Freeze("decoder.3.self", torch.eye(3)), gf.Knockout("decoder.3.self", keys=0)),
        (gf.Swap("decoder.3.self", scale=1.0), gf.Swap("decoder.3.self", scale=2.0)),
        (gf.Skip("decoder.3"), gf.Scale("decoder.3.mlp", 2.0)),
    ],
)
def test_interventions_that_contradict_each_other_are_refused(a, b) -> None:
    for first, second in ((a, b), (b, a)):
        with pytest.raises(InterventionError, match=r"contradict each other|has no effect"):
            first & second


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (gf.Ablate("decoder.3.self", head=1), gf.Ablate("decoder.3.self", head=2)),
        (gf.Ablate("decoder.3.self", positions=1), gf.Ablate("decoder.3.self", positions=[2])),
        (gf.Ablate("decoder.3.mlp", sequences=0), gf.Ablate("decoder.3.mlp", sequences=1)),
        (gf.Ablate("decoder.3.self"), gf.Steer("decoder.3.self", torch.ones(2))),
        (gf.Knockout("decoder.3.self", keys=1), gf.Knockout("decoder.3.self", keys=2)),
        (gf.Swap("decoder.3.self", scale=1.0), gf.Swap("decoder.3.self", softcap=2.0)),
        (gf.Skip("decoder.3"), gf.Scale("decoder.30.mlp", 2.0)),
    ],
)
def test_interventions_on_different_numbers_agree(a, b) -> None:
    assert len(a & b) == 2


def test_numbers_count_from_both_ends() -> None:
    assert resolve_numbers(None, 3, "heads") == [0, 1, 2]
    assert resolve_numbers(slice(-2, None), 5, "heads") == [3, 4]
    assert resolve_numbers(range(1, 3), 5, "heads") == [1, 2]
    with pytest.raises(InterventionError, match="heads must be 0 … 4; got 5"):
        resolve_numbers([1, 5], 5, "heads")
    with pytest.raises(InterventionError, match="whole numbers"):
        resolve_numbers([True], 5, "heads")
