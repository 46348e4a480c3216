"""What a picture shows of a head: largest weights, blocks, what is hidden, and the scale."""

import pytest
import torch

import glassformer as gf
from glassformer.errors import TraceError
from glassformer.render.head_cells import Drawing, Scale, fit_scale, head_cells
from glassformer.tracing import record


def build_site(n=50, mask=None, heads=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    q, k = (2 * torch.randn(2, 1, heads, n, 4, generator=generator)).unbind(0)
    return record(q, k, k, mask=mask, name="decoder.0.self")


def blocks(n, size):
    return [range(a * n // size, (a + 1) * n // size) for a in range(size)]


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize("first_key", [True, False])
@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Causal() & gf.Window(9)])
def test_blocks_are_the_largest_or_the_mean_of_what_may_be_seen(mask, first_key, pool):
    site = build_site(mask=mask)
    found = head_cells(site, 1, (7, 11), Drawing(pool=pool, first_key=first_key))
    weights, seen = site.weights(1), site.allowed(1).clone()
    seen[:, 0] &= first_key
    for a, rows in enumerate(blocks(50, 7)):
        for b, cols in enumerate(blocks(50, 11)):
            inside = weights[rows][:, cols][seen[rows][:, cols]]
            if not len(inside):
                assert found[a, b].isnan()
            else:
                expected = inside.max() if pool == "max" else inside.mean()
                assert float(found[a, b]) == pytest.approx(float(expected), abs=1e-5)


def test_a_single_strong_cell_stays():
    bias = torch.zeros(300, 300)
    bias[200, 50] = 30.0
    q = torch.zeros(1, 1, 300, 4)
    site = record(q, q, q, bias=bias)
    assert float(head_cells(site, 0, (16, 16), Drawing())[10, 2]) > 0.999
    assert float(head_cells(site, 0, (16, 16), Drawing(pool="mean"))[10, 2]) < 0.01


def test_short_texts_are_shown_as_they_are():
    site = build_site(6, gf.Causal())
    found = head_cells(site, 0, (6, 6), Drawing())
    assert torch.equal(found.isnan(), ~site.allowed(0))
    assert torch.equal(found.nan_to_num(0), site.weights(0))
    without = head_cells(site, 0, (6, 6), Drawing(first_key=False))
    assert without[:, 0].isnan().all() and torch.equal(
        without[:, 1:].nan_to_num(-1), found[:, 1:].nan_to_num(-1)
    )


def test_rows_by_their_own_largest():
    site = build_site(6, gf.Causal())
    found = head_cells(site, 0, (6, 6), Drawing(scale="row"))
    assert torch.allclose(found.nan_to_num(0).amax(-1), torch.ones(6))
    assert fit_scale([found], site, Drawing(scale="row")) == Scale(1.0, False)


def test_hidden_and_even_are_told_apart():
    q = torch.zeros(1, 1, 100, 4)
    site = record(q, q, q, mask=gf.Causal())
    found = head_cells(site, 0, (10, 10), Drawing())
    seen = ~found.isnan()
    assert torch.equal(seen, torch.ones(10, 10).tril().bool())
    assert bool((found[seen] > 0).all())


@pytest.mark.parametrize("n", [40, 600])
def test_the_first_row_is_beyond_the_scale(n):
    """Even attention: the first row has weight 1, and the scale does not reach up to it."""
    q = torch.zeros(1, 1, n, 4)
    site = record(q, q, q, mask=gf.Causal())
    found = head_cells(site, 0, (64, 64), Drawing())
    scale = fit_scale([found], site, Drawing())
    assert scale.largest <= 0.5 and scale.is_rooted
    assert float(found[0, 0]) == 1.0 and scale.share(1.0) == 1.0
    last = float(found[-1].nanmean())
    assert scale.share(last) > 0.05  # and the last row can be seen


def test_a_scale_back_and_forth():
    for scale in (Scale(0.4, True), Scale(0.4, False)):
        for share in (0.0, 0.25, 0.5, 1.0):
            assert scale.share(scale.value(share)) == pytest.approx(share)
        assert scale.share(9.0) == 1.0


def test_nothing_to_choose_from():
    q = torch.zeros(1, 1, 1, 4)
    site = record(q, q, q)
    assert fit_scale([head_cells(site, 0, (9, 9), Drawing())], site, Drawing()).largest == 1.0


@pytest.mark.plain
def test_refusals():
    with pytest.raises(TraceError, match="pool must be max or mean; got 'sum'"):
        Drawing(pool="sum")
    with pytest.raises(TraceError, match="scale must be quantile or row; got 'log'"):
        Drawing(scale="log")
