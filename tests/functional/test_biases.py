"""Biases: the formulas against the papers' definitions, gradients against autograd, refusals."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import ConfigError, DtypeError, ShapeError
from glassformer.functional.biases import BiasSum, as_bias
from glassformer.functional.cells import Cells, Extent, Tile

CPU = torch.device("cpu")


def whole(bias: gf.Bias, B: int, H: int, L: int, S: int) -> torch.Tensor:
    extent = Extent(B, H, L, S)
    return bias.fit_to(extent, CPU).tile(Tile.whole(extent, CPU)).expand(B, H, L, S)


def test_alibi_slopes_of_the_paper() -> None:
    assert gf.ALiBi.of_heads(8).slopes.tolist() == [2.0**-i for i in range(1, 9)]
    twelve = gf.ALiBi.of_heads(12).slopes
    assert_same(twelve[:8], gf.ALiBi.of_heads(8).slopes)
    assert_close(twelve[8:], torch.tensor([2 ** (-0.5 * i) for i in (1, 3, 5, 7)]), 1e-7)


def test_alibi_falls_with_distance() -> None:
    got = whole(gf.ALiBi(torch.tensor([1.0, 0.5])), 1, 2, 2, 4)
    far = torch.tensor([[2.0, 1.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0]])
    assert_same(got, torch.stack([-far, -far / 2])[None])
    placed = whole(gf.ALiBi(torch.tensor([1.0]), offset=0), 1, 1, 1, 3)
    assert_same(placed, -torch.tensor([[[[0.0, 1.0, 2.0]]]]))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (16, 20), (8, 1000)])
def test_buckets_are_those_of_t5(bidirectional: bool, n_buckets: int, max_distance: int) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5").T5Attention
    ahead = torch.arange(-2000, 2001)
    table = torch.zeros(n_buckets, 1)
    got = gf.RelativeBuckets(table, bidirectional, max_distance).buckets(ahead)
    expected = t5._relative_position_bucket(ahead, bidirectional, n_buckets, max_distance)
    assert_same(got, expected)


def test_relative_buckets_look_up_the_table() -> None:
    table = torch.randn(32, 3)
    got = whole(gf.RelativeBuckets(table), 2, 3, 5, 7)
    assert_same(got[1, 2, 4], table[[6, 5, 4, 3, 2, 1, 0], 2])  # the last query: all keys behind
    assert_same(got[0, 1, 0, 2:], table[[0, 17, 18, 19, 20], 1])  # the first: then keys ahead


@given(st.sampled_from(["alibi", "buckets", "dense", "row", "sum"]), st.integers(1, 9))
def test_gradients_of_tiles_are_autograds(kind: str, seed: int) -> None:
    """What streaming accumulates tile by tile is what autograd finds for the whole."""
    B, H, L, S = 2, 3, 5, 7
    torch.manual_seed(seed)
    slopes, table, dense, row = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((H,), (8, H), (B, H, L, S), (1, H, 1, S))
    )
    kinds = {
        "alibi": gf.ALiBi(slopes),
        "buckets": gf.RelativeBuckets(table, max_distance=9),
        "dense": gf.ExplicitBias(dense),
        "row": gf.ExplicitBias(row),
        "sum": gf.ALiBi(slopes) + gf.RelativeBuckets(table, max_distance=9) + row,
    }
    bias = kinds[kind]
    back = torch.randn(B, H, L, S, dtype=torch.float64)
    expected = torch.autograd.grad(whole(bias, B, H, L, S), bias.tensors(), back)
    sums = tuple(torch.zeros_like(t) for t in bias.tensors())
    for rows in (slice(0, 2), slice(2, 5)):
        for cols in (slice(0, 3), slice(3, 7)):
            tile = Tile(Extent(B, H, L, S), rows, cols, CPU)
            with torch.no_grad():
                bias.accumulate(sums, back[:, :, rows, cols], tile)
    for got, right in zip(sums, expected, strict=True):
        assert_close(got, right, 1e-12)


def test_formula_and_tile_agree() -> None:
    B, H, L, S = 2, 3, 5, 7
    bias = gf.ALiBi.of_heads(H) + gf.RelativeBuckets(torch.randn(32, H)) + torch.randn(1, H, L, 1)
    grid = torch.cartesian_prod(*(torch.arange(n) for n in (B, H, L, S))).unbind(-1)
    one_by_one = bias.values(Cells(*grid, torch.tensor(L), torch.tensor(S)))
    assert_close(one_by_one.view(B, H, L, S), whole(bias, B, H, L, S), 1e-6)


def test_sums_and_plain_tensors() -> None:
    a, b = torch.randn(5, 7), torch.randn(5, 7)
    assert_same(whole(gf.ExplicitBias(a) + b, 1, 1, 5, 7)[0, 0], a + b)
    assert isinstance(as_bias(a), gf.ExplicitBias)
    assert isinstance((gf.ExplicitBias(a) + b).to("meta"), BiasSum)


def test_exactness_in_low_precision() -> None:
    half = torch.randn(32, 3, dtype=torch.bfloat16)
    assert gf.RelativeBuckets(half).is_exact_in(torch.bfloat16)
    assert not gf.RelativeBuckets(half.float()).is_exact_in(torch.bfloat16)
    assert not gf.ALiBi(half[0]).is_exact_in(torch.bfloat16)
    assert not (gf.RelativeBuckets(half) + gf.RelativeBuckets(half)).is_exact_in(torch.bfloat16)
    assert gf.ExplicitBias(half).is_exact_in(torch.float64)


@pytest.mark.plain
def test_refusals() -> None:
    with pytest.raises(ConfigError, match="n_heads=0"):
        gf.ALiBi.of_heads(0)
    with pytest.raises(ConfigError, match=r"multiple of 4; got shape \(6, 2\)"):
        gf.RelativeBuckets(torch.zeros(6, 2))
    with pytest.raises(ConfigError, match=r"exceed the 8 distances.*got 8"):
        gf.RelativeBuckets(torch.zeros(32, 2), max_distance=8)
    with pytest.raises(DtypeError, match=r"must be floating; got torch.bool.*mask="):
        gf.ExplicitBias(torch.zeros(3, 3).bool())
    with pytest.raises(ShapeError, match=r"rank 2.*got shape \(2, 3, 3\)"):
        gf.ExplicitBias(torch.zeros(2, 3, 3))
    with pytest.raises(DtypeError, match=r"bias value such as.*got float"):
        as_bias(1.5)
    with pytest.raises(ShapeError, match=r"n_heads=2; got \(3,\)"):
        whole(gf.ALiBi.of_heads(3), 1, 2, 4, 4)
    with pytest.raises(ShapeError, match=r"n_heads=2; got \(3,\)"):
        whole(gf.RelativeBuckets(torch.zeros(32, 3)), 1, 2, 4, 4)
    with pytest.raises(ShapeError, match=r"\(1, 2, 4, 4\); got \(4, 5\)"):
        whole(gf.ExplicitBias(torch.zeros(4, 5)), 1, 2, 4, 4)
    with pytest.raises(DtypeError, match=r"ALiBi on meta and q on cpu.*bias.to\('cpu'\)"):
        whole(gf.ALiBi.of_heads(2).to("meta"), 1, 2, 4, 4)


def test_bias_of_minus_infinity_hides_like_a_mask() -> None:
    q, k, v = torch.randn(3, 1, 2, 4, 8, dtype=torch.float64).unbind(0)
    allowed = gf.Causal().dense(4)
    bias = torch.zeros(4, 4).masked_fill(~allowed[0, 0], -math.inf)
    bias[2] = -math.inf
    allowed[0, 0, 2] = False
    for backend in ("sdpa", "streaming", "reference"):
        got = gf.attention(q, k, v, bias=bias.double(), backend=backend)
        assert_close(got, gf.attention(q, k, v, mask=allowed), 1e-12, backend)
