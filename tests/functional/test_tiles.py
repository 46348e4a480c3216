"""The plan of tiles: within budget, every cell once, nothing that matters skipped."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.functional.cells import Extent
from glassformer.functional.checks import check_scoring
from glassformer.functional.tiles import Plan, tile_scores

CPU = torch.device("cpu")
MASKS = (
    None,
    gf.Causal(),
    gf.Causal() & gf.Window(2),
    ~gf.Window(1, 1),
    gf.Prefix(2),
    gf.Window(1) & ~gf.Causal(),
)


@given(
    st.integers(1, 17),
    st.integers(1, 17),
    st.sampled_from(range(len(MASKS))),
    st.integers(1, 4000),
    st.booleans(),
)
def test_every_allowed_cell_is_in_one_tile(
    L: int, S: int, which: int, budget: int, wide: bool
) -> None:
    mask = MASKS[which]
    if which == 4 and S < 2:
        mask = None
    with gf.memory_budget(budget):
        plan = Plan.of(Extent(1, 1, L, S), mask, CPU, wide=wide)
    seen = torch.zeros(L, S)
    sure = torch.zeros(L, S, dtype=torch.bool)
    rows_seen = []
    for rows, tiles in plan.chunks():
        rows_seen += range(L)[rows]
        for tile in tiles:
            assert tile.rows == rows
            seen[tile.rows, tile.cols] += 1
            if not tile.mixed:
                sure[tile.rows, tile.cols] = True
    allowed = torch.ones(L, S).bool() if mask is None else mask.dense(L, S)[0, 0]
    assert rows_seen == list(range(L))
    assert seen.max() <= 1
    assert not (allowed & (seen == 0)).any()
    assert not (sure & ~allowed).any()


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("extent", [Extent(1, 1, 65536, 65536), Extent(4, 16, 4096, 8192)])
def test_tiles_keep_to_the_budget(extent: Extent, wide: bool) -> None:
    budget = 16 << 20
    with gf.memory_budget(budget):
        plan = Plan.of(extent, gf.Causal(), CPU, wide=wide)
    for _, tiles in plan.chunks():
        for tile in tiles:
            rows, cols = (s.stop - s.start for s in (tile.rows, tile.cols))
            assert extent.B * extent.H * rows * cols * 4 <= budget


def test_share_counts_what_is_left() -> None:
    extent = Extent(1, 1, 4096, 4096)
    with gf.memory_budget(1 << 20):
        assert Plan.of(extent, None, CPU).share == 1
        assert 0.5 < Plan.of(extent, gf.Causal(), CPU).share < 0.6
        assert Plan.of(extent, gf.Causal() & gf.Window(99), CPU).share < 0.12


def test_budget_is_given_back_after_an_error() -> None:
    extent = Extent(1, 1, 5000, 5000)
    usual = Plan.of(extent, None, CPU).rows
    with pytest.raises(RuntimeError), gf.memory_budget(100):
        assert Plan.of(extent, None, CPU).rows < usual
        raise RuntimeError
    assert Plan.of(extent, None, CPU).rows == usual


def test_scores_of_tiles_are_those_of_the_whole() -> None:
    q, k = torch.randn(2, 6, 5, 11), torch.randn(2, 3, 7, 11)
    options = {"mask": gf.Causal(), "bias": torch.randn(5, 7), "scale": 0.3, "softcap": 1.1}
    scoring = check_scoring(q, k, **options)
    repeated = k.repeat_interleave(2, 1)
    scores = 1.1 * torch.tanh(q @ repeated.mT * 0.3 / 1.1) + options["bias"]
    scores = scores.masked_fill(~gf.Causal().dense(5, 7), -torch.inf)
    with gf.memory_budget(3000):
        plan = Plan.of(scoring.extent, None, CPU)
    n = 0
    for _, tiles in plan.chunks():
        for tile in tiles:
            got = tile_scores(q, k, scoring, tile._replace(mixed=True))
            expected = scores[:, :, tile.rows, tile.cols]
            assert_same(got.isneginf(), expected.isneginf())
            assert_close(got, expected, 1e-6)
            n += 1
    assert n > 4
