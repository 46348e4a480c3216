"""How sharp a head is: measured against the keys that each query may see."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer as gf
from glassformer.analysis import roles
from glassformer.tracing import record

B, H, L, S, D = 2, 3, 7, 11, 4
DOCUMENTS = torch.tensor([[0] * 4 + [1] * 7, [0] * 9 + [1] * 2])
HIDDEN = torch.rand(1, H, L, S, generator=torch.Generator().manual_seed(3)) > 0.6
MASKS = {
    "none": {},
    "causal": {"mask": gf.Causal()},
    "window": {"mask": gf.Causal() & gf.Window(2)},
    "both sides": {"mask": gf.Window(1, 2)},
    "padding": {"mask": gf.Padding([11, 5])},
    "documents": {"mask": gf.Documents(DOCUMENTS, DOCUMENTS[:, S - L :])},
    "explicit": {"mask": gf.Explicit(~HIDDEN)},
    "bias": {"bias": torch.zeros(1, H, L, S).masked_fill(HIDDEN, -torch.inf)},
    "mask and bias": {
        "mask": gf.Causal(),
        "bias": torch.zeros(1, H, L, S).masked_fill(HIDDEN, -torch.inf),
    },
}


def zeros(*shape):
    return torch.zeros(*shape)


@pytest.mark.parametrize("name", MASKS)
def test_even_attention_is_0_under_every_mask(name):
    site = record(zeros(B, H, L, D), zeros(B, H, S, D), zeros(B, H, S, D), **MASKS[name])
    for sequence in range(B):
        found = site.sharpness(sequence=sequence)
        assert found.shape == (H,)
        assert torch.allclose(found, torch.zeros(H), atol=1e-6)


@pytest.mark.parametrize("name", MASKS)
def test_a_single_key_is_1_under_every_mask(name):
    """Each query scores 1000 on the first key that it may see, and 0 elsewhere."""
    given = record(zeros(B, H, L, D), zeros(B, H, S, D), zeros(B, H, S, D), **MASKS[name])
    allowed = torch.stack([given.allowed(sequence=b) for b in range(B)])
    one = 1000.0 * torch.nn.functional.one_hot(allowed.int().argmax(-1), S)
    bias = one + MASKS[name].get("bias", 0.0)
    options = {**MASKS[name], "bias": bias}
    site = record(zeros(B, H, L, D), zeros(B, H, S, D), zeros(B, H, S, D), **options)
    for sequence in range(B):
        assert torch.allclose(site.sharpness(sequence=sequence), torch.ones(H), atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 40), more=st.integers(0, 60), seed=st.integers(0, 9))
def test_a_future_that_no_query_sees_changes_nothing(n, more, seed):
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(1, 2, n, D, generator=generator)
    k = torch.randn(1, 2, n + more, D, generator=generator)
    mask = gf.Causal(offset=0)
    short = record(q, k[:, :, :n], k[:, :, :n], mask=mask).sharpness()
    long = record(q, k, k, mask=mask).sharpness()
    assert torch.allclose(short, long, atol=1e-6)


@pytest.mark.parametrize("name", MASKS)
def test_the_definition_row_by_row(name):
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(B, H, L, D, generator=generator), torch.randn(B, H, S, D)
    site = record(q, k, k, **MASKS[name])
    for sequence in range(B):
        weights = site.weights(sequence=sequence).double()
        allowed = site.allowed(sequence=sequence)
        for head in range(H):
            rows = []
            for i in range(L):
                n = int(allowed[head, i].sum())
                if n > 1:
                    p = weights[head, i][allowed[head, i]]
                    rows.append(1 + float((p * p.log()).sum()) / math.log(n))
            found = float(site.sharpness(head, sequence=sequence))
            assert found == pytest.approx(sum(rows) / len(rows), abs=1e-5)


def test_without_a_choice_nothing_is_measured():
    site = record(zeros(1, 1, 1, D), zeros(1, 1, 1, D), zeros(1, 1, 1, D))
    assert site.sharpness(0).isnan()
    empty = record(zeros(1, 1, 3, D), zeros(1, 1, 3, D), zeros(1, 1, 3, D), mask=gf.Padding([0]))
    assert empty.visible(0).tolist() == [0, 0, 0] and empty.sharpness(0).isnan()


def test_causal_heads_are_not_flattered():
    """Even attention over 200 tokens, divided by log S, would look a fifth of the way to sharp."""
    q = zeros(1, 1, 200, D)
    site = record(q, q, q, mask=gf.Causal())
    assert float(1 - site.entropy(0).mean() / math.log(200)) > 0.15
    assert float(site.sharpness(0)) == pytest.approx(0.0, abs=1e-6)


def test_roles_know_keys_that_a_bias_hides():
    """Everything but three keys hidden by −∞: attention that is even over them is broad."""
    q = zeros(1, 1, 12, D)
    bias = torch.full((12, 12), -torch.inf)
    bias[:, [0, 4, 8, 11]] = 0.0
    (role,) = roles(record(q, q, q, bias=bias))
    assert role.scores["broad"] == pytest.approx(1.0, abs=1e-5)
