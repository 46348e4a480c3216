"""Frozen readouts: the scores at one state, and affine everywhere else."""

import pytest
import torch

from closeness import assert_close
from glassformer.models.checkpoints import load
from glassformer.tracing import watch
from glassformer.tracing.frozen_readout import FrozenReadout
from tiny_models import tiny
from tracing.test_stream import build


@pytest.mark.parametrize("name", ["bert", "modernbert-decoder", "reader"])
def test_a_direction_and_a_constant_are_the_scores(name: str) -> None:
    model = {"reader": load, "modernbert-decoder": build}.get(name, tiny)(name)
    with torch.no_grad(), watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    stream = trace.residual()
    end = stream.end[0, 2]
    frozen = FrozenReadout(stream.readout, end)
    scores = stream.readout(stream.end)[0, 2].double()
    assert_close(frozen.scores, scores, 1e-5 * float(scores.abs().max()))
    for token in (0, 5, frozen.n_tokens - 1):
        direction, constant = frozen.measure([token], torch.ones(1, dtype=torch.float64))
        assert_close(direction @ end.double() + constant, scores[token], 1e-4)
