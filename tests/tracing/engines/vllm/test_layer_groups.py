"""Layers of one shape share their tensors; what is copied is what was selected."""

import pytest
import torch

from closeness import assert_same
from glassformer.tracing.engines.vllm.layer_groups import (
    LayerGroup,
    copy_part,
    group_layers,
)
from glassformer.tracing.engines.vllm.watched_model import WatchedModel
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection
from tracing.engines.vllm.toy_engine import NAMES, D, H, K, ToyEngine


def groups_of(engine: ToyEngine, heads: list[int] | None = None) -> list[LayerGroup]:
    """The groups of the two layers."""
    found = group_layers(WatchedModel(engine.runner), Selection(heads=heads))
    return [found[name] for name in NAMES]


def test_layers_of_one_shape_are_one_group() -> None:
    engine = ToyEngine()
    first, second = groups_of(engine)
    assert first is second and first.places == {NAMES[0]: 0, NAMES[1]: 1}
    engine.layers[NAMES[1]].head_size = D + 1
    first, second = groups_of(engine)
    assert first.places == {NAMES[0]: 0} and second.places == {NAMES[1]: 0}


def test_layers_that_are_refused_have_no_group() -> None:
    engine = ToyEngine()
    engine.layers[NAMES[0]].attn_type = "encoder_only"
    assert list(group_layers(WatchedModel(engine.runner), Selection())) == NAMES[1:]


@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize(("heads", "n_heads", "n_kv_heads"), [(None, H, K), ([0, 2, 3], 3, 3)])
def test_bytes_are_those_that_are_reserved(
    heads: list[int] | None, n_heads: int, n_kv_heads: int, outputs: bool
) -> None:
    engine, E = ToyEngine(), 7
    for layer in engine.layers.values():
        layer.head_size_v = E
    group, store = groups_of(engine, heads)[0], OperandStore()
    stack = group.reserve(store, torch.zeros(1), 2, 11, outputs=outputs)
    assert stack.q.shape == (2, 2, n_heads, D)
    assert stack.k.shape == (2, 11, n_kv_heads, D)
    assert stack.v.shape == (2, 11, n_kv_heads, E)
    assert (stack.out is not None) == outputs
    assert group.count_bytes(2, 11, outputs=outputs) == store.in_memory
    del stack
    assert store.in_memory == 0


def test_heads_of_keys_are_those_that_the_queries_read() -> None:
    group = groups_of(ToyEngine(), heads=[1, 2, 3])[0]
    assert (group.heads, group.read) == ((1, 2, 3), (0, 1, 1))


def test_copies_leave_other_requests_and_padding_out() -> None:
    operand = torch.arange(6 * 3 * 2).view(6, 3, 2).float()
    rows = torch.tensor([0, 3])
    for heads, index in ((None, None), ((0, 2), None), (None, rows), ((2,), rows)):
        expected = operand[1:5][index if index is not None else slice(None)]
        expected = expected if heads is None else expected[:, list(heads)]
        copied = torch.full_like(expected, torch.nan)
        copy_part(copied, operand, slice(1, 5), heads, index)
        assert_same(copied, expected)
