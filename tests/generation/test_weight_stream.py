"""What a product prefetches: every element once, and none beyond a matrix."""

from itertools import pairwise

import pytest
import torch

from generation.step_models import make
from glassformer.generation import weight_stream
from glassformer.generation.weight_stream import Matrix, WeightStream, plan_prefetch
from glassformer.models.decoder_weights import DecoderWeights


@pytest.mark.parametrize("ahead", [1 << 9, 1 << 12, 1 << 20])
@pytest.mark.parametrize("columns", [2, 4])
@pytest.mark.parametrize("gated", [False, True])
def test_the_next_matrix_is_shared_out(ahead: int, columns: int, gated: bool) -> None:
    here, after = Matrix(torch.zeros(28, 24)), Matrix(torch.zeros(44, 40), gated)
    n_programs = 28 // columns
    plan = plan_prefetch(here, after, columns=columns, n_programs=n_programs, ahead=ahead)
    assert plan.following is after.weight
    halves = 2 if gated else 1
    assert plan.length <= after.weight.numel() // halves
    assert plan.length * halves * 4 > min(ahead, after.weight.numel() * 4) - 16 * halves
    sharing = min(n_programs, plan.distance)
    assert sharing * plan.share >= plan.length > (sharing * plan.share) // 2 - 4 * sharing
    assert plan.share % 4 == plan.length % 4 == plan.gap % 4 == 0  # 16 bytes


def test_the_order_of_the_matrices() -> None:
    weights = DecoderWeights.of(make("translator", torch.float32))
    stream = WeightStream(weights)
    first, second, *_ = weights.stack.layers
    assert first.cross is not None
    order = [
        first.attention.qkv,
        first.attention.out,
        first.cross.q,
        first.cross.out,
        first.feed_forward.up,
        first.feed_forward.down,
        second.attention.qkv,
    ]
    for here, after in pairwise(order):
        plan = stream.plan(Matrix(here.weight), 2, 9)
        assert plan is not None
        assert plan.following is after.weight
    last = stream.plan(Matrix(weights.head.weight), 2, 9)
    assert last is not None
    assert last.following is first.attention.qkv.weight


def test_nothing_is_prefetched(monkeypatch: pytest.MonkeyPatch) -> None:
    aligned = DecoderWeights.of(make("learned", torch.float32))
    rows_of_40_bytes = DecoderWeights.of(make("learned", torch.bfloat16))
    weight = rows_of_40_bytes.stack.layers[0].attention.qkv.weight
    assert WeightStream(rows_of_40_bytes).plan(Matrix(weight), 2, 9) is None
    monkeypatch.setattr(weight_stream, "AHEAD", 0)
    weight = aligned.stack.layers[0].attention.qkv.weight
    assert WeightStream(aligned).plan(Matrix(weight), 2, 9) is None
