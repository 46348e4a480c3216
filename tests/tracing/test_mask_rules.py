"""Foreign masks: the rule that is found opens exactly the cells that were open."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_same
from glassformer.functional import ExplicitBias
from glassformer.functional.reference import attention_weights
from glassformer.tracing.mask_rules import find_rule, join_rules, read_mask

B, H, L, S = 2, 1, 4, 7
causal = torch.ones(L, S, dtype=torch.bool).tril(S - L)
near = causal.triu(S - L - 2)
right = torch.arange(S) < torch.tensor([[S], [5]])
KNOWN = {
    "None": torch.ones(B, H, L, S, dtype=torch.bool),
    "Causal()": causal.expand(B, H, L, S),
    "Causal() & Window(left=2) & Padding(lengths=[6, 6], side='left')": near.expand(B, H, L, S),
    "Padding(lengths=[7, 5])": right[:, None, None].expand(B, H, L, S),
    "Causal() & Padding(lengths=[7, 5])": causal & right[:, None, None],
    "Causal() & Padding(lengths=[7, 5], side='left')": causal & right.flip(1)[:, None, None],
    "Window(left=4, right=1)": torch.ones(L, S).bool().tril(S - L + 1).triu(S - L - 4)[None, None],
}


@pytest.mark.parametrize("rule", KNOWN)
def test_rules_are_recognised(rule: str) -> None:
    found = find_rule(KNOWN[rule])
    assert repr(found.mask(B=B)) == rule
    assert found.cells is None
    assert_same(found.dense().expand_as(KNOWN[rule]), KNOWN[rule])


def drawn_cells(numbers: list[int], L: int, S: int) -> torch.Tensor:
    return torch.tensor(numbers[: B * L * S]).bool().view(B, 1, L, S)


@given(st.lists(st.integers(0, 1), min_size=60, max_size=60), st.integers(1, 5), st.integers(1, 6))
def test_whatever_is_open_stays_so(numbers: list[int], L: int, S: int) -> None:
    cells = drawn_cells(numbers, L, S)
    found = find_rule(cells)
    assert_same(found.dense().expand_as(cells), cells)
    q, k = torch.randn(B, 3, L, 2), torch.randn(B, 3, S, 2)
    assert_same(attention_weights(q, k, mask=found.mask(B=B)), attention_weights(q, k, mask=cells))
    if not cells[..., S - 1 :].any():
        shorter = found.drop_keys(S - 1)
        assert shorter is not None
        assert_same(shorter.dense().expand(B, 1, L, S - 1), cells[..., : S - 1])
    else:
        assert found.drop_keys(S - 1) is None
    with_sink = found.mask(B=B, has_sink=True)
    wide = torch.nn.functional.pad(cells, (1, 0), value=True)
    sunk = torch.nn.functional.pad(k, (0, 0, 1, 0))
    if L <= S:
        expected = attention_weights(q, sunk, mask=wide)
        assert_same(attention_weights(q, sunk, mask=with_sink), expected)


@given(st.lists(st.integers(0, 1), min_size=60, max_size=60), st.integers(1, 4))
def test_steps_joined_are_the_matrix(numbers: list[int], first: int) -> None:
    """Any mask that is causal may be cut into steps, with or without keys that nobody sees."""
    cells = drawn_cells(numbers, 5, 5).tril()
    order = [torch.arange(B)] * 2
    for start in (0, 1) if not cells[:, :, first:, :1].any() else (0,):
        steps = [
            find_rule(cells[:, :, :first, :first]),
            find_rule(cells[:, :, first:, start:]),
        ]
        joined = join_rules(steps, order, [0, start], 5)
        assert (joined.L, joined.S) == (5, 5)
        assert_same(joined.dense().expand_as(cells), cells)
        swapped = join_rules(steps, [torch.tensor([1, 1]), order[0]], [0, start], 5)
        assert_same(swapped.dense().expand_as(cells)[:, :, :first], cells[[1, 1], :, :first])


def test_numbers_are_masks_where_they_are_least_and_biases_elsewhere() -> None:
    q, k = torch.randn(B, 3, L, 2), torch.randn(B, 3, S, 2)
    least = torch.finfo(torch.float32).min
    for hidden in (least, -torch.inf):
        added = torch.where(causal, torch.randn(B, 3, L, S), hidden)
        rule, bias = read_mask(added, L, S, is_added=True)
        assert repr(rule.mask(B=B)) == "Causal()"
        assert bias is not None
        ours = attention_weights(q, k, mask=rule.mask(B=B), bias=ExplicitBias(bias))
        assert_same(ours, attention_weights(q, k, bias=added))
    rule, bias = read_mask(torch.where(causal, 0.0, least), L, S, is_added=True)
    assert bias is None and repr(rule.mask(B=B)) == "Causal()"


def test_booleans_that_are_added_count_as_numbers() -> None:
    rule, bias = read_mask(causal, L, S, is_added=True)
    assert rule.mask(B=B) is None and bias is not None
    assert_same(bias, causal.float()[None, None])
    rule, bias = read_mask(causal[None], L, S, is_added=False)
    assert isinstance(rule.mask(B=B), gf.Causal) and bias is None
