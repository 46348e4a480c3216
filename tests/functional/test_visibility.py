"""How many keys a query may see: equal to counting the cells, whatever hides them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer as gf
from glassformer.functional import visibility
from glassformer.functional.cells import Extent
from glassformer.functional.visibility import visible_keys

CPU = torch.device("cpu")
B, H, L, S = 2, 3, 7, 11


def masks():
    generator = torch.Generator().manual_seed(0)
    some = torch.rand(B, H, L, S, generator=generator) > 0.4
    documents = torch.tensor([[0] * 4 + [1] * 7, [0] * 9 + [1] * 2])
    return {
        "none": None,
        "causal": gf.Causal(),
        "offset": gf.Causal(offset=torch.tensor([1, 5])),
        "window": gf.Window(2, 1),
        "causal window": gf.Causal() & gf.Window(3),
        "padding": gf.Padding([11, 5]),
        "prefix": gf.Causal() | gf.Prefix(3),
        "documents": gf.Documents(documents, documents[:, S - L :]),
        "explicit": gf.Explicit(some),
        "nothing": gf.Padding([0, 4]),
        "not": ~gf.Causal(),
    }


@pytest.mark.parametrize("block", [1, 3, 256])
@pytest.mark.parametrize("name", masks())
def test_the_cells_are_counted(name, block, monkeypatch):
    monkeypatch.setattr(visibility, "_BLOCK", block)
    mask = masks()[name]
    found = visible_keys(Extent(B, H, L, S), CPU, mask=mask)
    dense = torch.ones(1, 1, L, S) if mask is None else mask.dense(L, S, batch=B, n_heads=H)
    assert torch.equal(found, dense.expand(B, H, L, S).sum(-1).long())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["none", "causal", "padding", "explicit"])
def test_biases_of_minus_infinity_hide_too(name, dtype):
    generator = torch.Generator().manual_seed(1)
    hidden = torch.rand(1, H, L, S, generator=generator) > 0.7
    bias = torch.randn(1, H, L, S, generator=generator).masked_fill(hidden, -torch.inf).to(dtype)
    mask = masks()[name]
    allowed = torch.ones(1, 1, L, S, dtype=torch.bool)
    if mask is not None:
        allowed = mask.dense(L, S, batch=B, n_heads=H)
    expected = (allowed & ~hidden).expand(B, H, L, S).sum(-1)
    for added in (gf.ExplicitBias(bias), gf.ExplicitBias(bias) + gf.ALiBi.of_heads(H)):
        found = visible_keys(Extent(B, H, L, S), CPU, mask=mask, bias=added)
        assert torch.equal(found, expected)


def test_the_lowest_finite_number_hides_and_a_low_one_does_not():
    bias = torch.tensor([[0.0, torch.finfo(torch.float32).min, -1e9]])
    found = visible_keys(Extent(1, 1, 1, 3), CPU, bias=gf.ExplicitBias(bias))
    assert found.tolist() == [[[2]]]


def test_long_inputs_need_no_matrix():
    n = 300_000  # a matrix of that size would have 9 · 10¹⁰ cells
    found = visible_keys(Extent(1, 1, n, n), CPU, mask=gf.Causal() & gf.Window(4095))
    assert torch.equal(found[0, 0], torch.arange(1, n + 1).clamp(max=4096))


@settings(max_examples=25, deadline=None)
@given(left=st.integers(0, 12), n=st.integers(1, 20), extra=st.integers(0, 9))
def test_windows_of_any_width(left, n, extra):
    mask = gf.Causal() & gf.Window(left)
    found = visible_keys(Extent(1, 1, n, n + extra), CPU, mask=mask)
    assert torch.equal(found, mask.dense(n, n + extra).sum(-1))
