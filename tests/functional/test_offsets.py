"""Masks of every kind at every size, where parts of them hide nothing: all backends agree."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_close, assert_zero
from glassformer.functional import reference
from glassformer.functional.cells import Extent
from glassformer.functional.masks import simplify

H, D = 2, 4
Draw = Callable[[st.SearchStrategy[Any]], Any]
BACKENDS = ("sdpa", "streaming", "reference", None)
sizes = st.integers(1, 21)
offsets = st.one_of(st.none(), st.integers(-3, 25))


@pytest.mark.parametrize(("L", "S", "n"), [(4, 4, 3), (3, 4, 3), (5, 2, 1), (2, 9, 8), (3, 1, 0)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_causal_mask_that_hides_nothing(L: int, S: int, n: int, backend: str | None) -> None:
    q, k, v = (torch.randn(1, H, size, D) for size in (L, S, S))
    got = gf.attention(q, k, v, mask=gf.Causal(offset=n), backend=backend)
    assert_close(got, gf.attention(q, k, v), 1e-6)
    assert gf.explain(q, k, v, mask=gf.Causal(offset=n)).backend == "sdpa"


def a_mask(draw: Draw, B: int, L: int, S: int) -> gf.Mask:
    """Any mask: the plain kinds with any numbers, as Python integers or tensors, and composed."""
    kind = draw(st.sampled_from(["causal", "window", "prefix", "padding", "explicit", "documents"]))
    offset = draw(offsets)
    if offset is not None:
        form = draw(st.sampled_from(["int", "tensor", "per sequence"]))
        offset = {"int": offset, "tensor": torch.tensor(offset)}.get(form, torch.full((B,), offset))
    match kind:
        case "causal":
            mask = gf.Causal(offset=offset)
        case "window":
            widths = draw(st.sampled_from([(0, None), (None, 0), (3, 2), (30, 30), (0, 0)]))
            mask = gf.Window(*widths, offset=offset)
        case "prefix":
            mask = gf.Prefix(draw(st.integers(0, S)))
        case "padding":
            mask = gf.Padding(torch.randint(0, S + 1, (B,)))
        case "explicit":
            cells = torch.rand(B, 1, L, S)
            mask = gf.Explicit(cells > draw(st.sampled_from([-1.0, 0.5, 2.0])))
        case _:
            mask = gf.Documents(torch.arange(S) // 3, query_ids=torch.arange(L) // 2)
    if draw(st.integers(0, 2)) == 0:
        other = a_mask(draw, B, L, S)
        return draw(st.sampled_from([mask & other, mask | other, ~mask, mask & ~other]))
    return mask


def a_case(draw: Draw) -> tuple:
    B, L, S = draw(st.integers(1, 2)), draw(sizes), draw(sizes)
    mask = draw(st.one_of(st.none(), st.just("some")))
    mask = None if mask is None else a_mask(draw, B, L, S)
    bias = draw(st.sampled_from(["none", "explicit", "alibi", "hiding"]))
    scores = torch.randn(L, S, dtype=torch.float64)
    bias = {
        "none": None,
        "explicit": scores,
        "alibi": gf.ALiBi(torch.tensor([0.5, 0.25], dtype=torch.float64), offset=draw(offsets)),
        "hiding": scores.masked_fill(torch.rand(L, S) > 0.5, -torch.inf),
    }[bias]
    q, k, v = (torch.randn(B, H, size, D, dtype=torch.float64) for size in (L, S, S))
    return q, k, v, {"mask": mask, "bias": bias, "scale": draw(st.sampled_from([None, -1.0, 0.0]))}


@given(data=st.data(), seed=st.integers(0, 999))
@settings(max_examples=120)
def test_every_backend_agrees_and_explains_what_it_does(data: st.DataObject, seed: int) -> None:
    torch.manual_seed(seed)
    q, k, v, options = a_case(data.draw)
    exact = reference.attention(q, k, v, **options)
    explanation = gf.explain(q, k, v, **options)
    assert explanation.refusals[explanation.backend] is None
    assert explanation.refusals["sdpa"] is None
    for backend in BACKENDS:
        got = gf.attention(q, k, v, **options, backend=backend)
        assert_close(got, exact, 1e-12, f"{backend}, {options}")
    extent = Extent(q.shape[0], H, q.shape[2], k.shape[2])
    if options["mask"] is not None and simplify(options["mask"], extent) is None:
        assert options["mask"].dense(*extent[2:], batch=extent.B, n_heads=H).all()


def test_one_cell_that_is_hidden() -> None:
    q = torch.ones(1, 1, 1, 4)
    for backend in ("sdpa", "streaming", "reference"):
        assert_zero(gf.attention(q, q, q, mask=~gf.Causal(), backend=backend))
