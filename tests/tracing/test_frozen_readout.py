"""Frozen readouts: the scores at one state, and affine everywhere else."""

import pytest
import torch
from torch import nn

from closeness import assert_close
from glassformer.models import Config
from glassformer.models import build as build_model
from glassformer.models.checkpoints import load
from glassformer.models.config import Norms
from glassformer.tracing import watch
from glassformer.tracing.frozen_readout import FrozenReadout
from tiny_models import tiny
from tracing.test_stream import build


def build_rms(_name: str) -> nn.Module:
    """An encoder of ours whose norms are written out, not PyTorch's."""
    torch.manual_seed(3)
    sizes = {"vocab_size": 13, "dim": 12, "n_layers": 2, "n_heads": 3, "max_len": 16}
    model = build_model(Config(family="encoder", norms=Norms(kind="rms"), **sizes)).eval()
    for part in model.parameters():
        part.data.normal_(std=0.4)
    return model


MAKERS = {"reader": load, "modernbert-decoder": build, "rms": build_rms}


@pytest.mark.parametrize("name", ["bert", *MAKERS])
def test_a_direction_and_a_constant_are_the_scores(name: str) -> None:
    model = MAKERS.get(name, tiny)(name)
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
