"""Every level of the pyramid equals the dense weights in float64, pooled."""

import math

import pytest
import torch
from torch import Tensor

import glassformer as gf
from glassformer.analysis import pyramid
from glassformer.analysis.pooled_cells import HIDDEN
from glassformer.analysis.pyramid import TILE, Pyramid
from glassformer.tracing import Site


def make_site(L: int, S: int, *, B: int = 1, H: int = 1, K: int = 1, **options) -> Site:
    torch.manual_seed(0)
    q = torch.randn(B, H, L, 8, dtype=torch.float64)
    k, v = torch.randn(2, B, K, S, 8, dtype=torch.float64).unbind(0)
    return Site(name="decoder.0.self", q=2 * q, k=k, v=v, **options)


SITES = {
    "causal": lambda: make_site(301, 301, mask=gf.Causal()),
    "windowed": lambda: make_site(293, 293, mask=gf.Causal() & gf.Window(37)),
    "padded": lambda: make_site(277, 277, B=2, mask=gf.Padding(torch.tensor([277, 131]))),
    "both padded": lambda: make_site(
        67, 67, B=2, mask=gf.Padding(torch.tensor([67, 20]), of="both", side="left")
    ),
    "grouped": lambda: make_site(263, 263, H=6, K=2, mask=gf.Causal()),
    "cross": lambda: make_site(11, 521),
    "cached": lambda: make_site(71, 311, mask=gf.Causal()),
    "biased": lambda: make_site(
        83, 83, H=4, K=4, mask=gf.Causal(), bias=gf.ALiBi(torch.tensor([0.5, 0.2, 0.1, 0.05]))
    ),
    "soft-capped": lambda: make_site(89, 97, softcap=2.0, scale=0.7),
    "explicit": lambda: make_site(53, 59, mask=gf.Explicit(torch.rand(53, 59) < 0.3)),
    "hidden by a bias": lambda: make_site(
        31,
        37,
        bias=gf.ExplicitBias(torch.zeros(31, 37).masked_fill(torch.rand(31, 37) < 0.5, -1e38)),
    ),
    "a single cell": lambda: make_site(1, 1, mask=gf.Causal()),
}


def dense(site: Site, head: int, sequence: int, *, has_first: bool) -> Tensor:
    """The weights with hidden cells −1."""
    weights = site.weights(head, sequence=sequence)
    visible = site.allowed(head, sequence=sequence).clone()
    visible[:, 0] &= has_first
    return weights.masked_fill(~visible, HIDDEN)


def pooled(cells: Tensor, level: int, pool: str) -> Tensor:
    """Blocks of the visible cells; the edges are filled up with hidden ones."""
    n = 1 << level
    rows, cols = (-length % n for length in cells.shape)
    cells = torch.nn.functional.pad(cells, (0, cols, 0, rows), value=HIDDEN)
    blocks = cells.unflatten(0, (-1, n)).unflatten(2, (-1, n)).transpose(1, 2).flatten(2)
    visible = blocks != HIDDEN
    sums = (blocks * visible).sum(-1)
    found = blocks.amax(-1) if pool == "max" else sums / visible.sum(-1).clamp(min=1)
    return found.where(visible.any(-1), HIDDEN)


def read_level(found: Pyramid, level: int, pool: str, has_first: bool) -> tuple[Tensor, Tensor]:
    """A whole level, put together from its tiles, and the largest value of each line."""
    n = [math.ceil(math.ceil(length / 2**level) / TILE) for length in (found.L, found.S)]
    tiles = [
        [found.tile(level, r, c, pool, has_first=has_first) for c in range(n[1])]
        for r in range(n[0])
    ]
    whole = torch.cat([torch.cat([tile.values for tile in row], dim=1) for row in tiles])
    return whole, torch.cat([row[0].row_tops for row in tiles])


@pytest.fixture(params=["stored", "from cells"])
def _small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts keep all cells; here they keep few blocks, so that fine levels are computed."""
    if request.param == "from cells":
        monkeypatch.setattr(pyramid, "_MOST_BLOCKS", 100)
        work = pyramid._Work(band=1000, chunk=64, kept=3000)
        monkeypatch.setattr(pyramid, "_ON_CPU", work)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", SITES)
def test_tiles_are_the_pooled_dense_weights(name: str) -> None:
    site = SITES[name]()
    head, sequence = site.n_heads - 1, site.shape[0] - 1
    found = Pyramid(site, head, sequence)
    for has_first in (True, False):
        cells = dense(site, head, sequence, has_first=has_first)
        for level in range(found.top_level + 3):
            for pool in ("max", "mean"):
                expected = pooled(cells, level, pool)
                values, tops = read_level(found, level, pool, has_first)
                torch.testing.assert_close(values, expected, rtol=1e-9, atol=1e-12)
                lines = expected.amax(-1).clamp(min=0)
                torch.testing.assert_close(tops, lines, rtol=1e-9, atol=1e-12)


def test_float32_tiles_are_as_exact_as_the_weights_themselves() -> None:
    exact = make_site(300, 300, mask=gf.Causal())
    site = Site(name="s", q=exact.q.float(), k=exact.k.float(), v=exact.v.float(), mask=exact.mask)
    values = Pyramid(site, 0).tile(0, 0, 0).values.double()
    expected = dense(exact, 0, 0, has_first=True)[:TILE, :TILE]
    torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-7)


def test_a_fine_tile_surveys_its_own_rows_only() -> None:
    found = Pyramid(make_site(3000, 3000, mask=gf.Causal()), 0)
    assert (found.middle, found.top_level, found.n_surveyed) == (1, 4, 0)
    found.tile(0, 0, 0)
    assert 256 <= found.n_surveyed < 3000
    found.tile(found.top_level, 0, 0)
    assert found.n_surveyed == 3000


def test_the_survey_reports_progress_and_goes_on_where_it_was_stopped() -> None:
    site = make_site(2100, 2100, mask=gf.Causal())
    found, heard = Pyramid(site, 0), []

    def stop_in_the_middle(share: float) -> None:
        heard.append(share)
        if share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found.survey(slice(0, 2100), stop_in_the_middle)
    assert heard == sorted(heard) and 0 < found.n_surveyed < 2100
    done = found.n_surveyed
    found.survey(slice(0, 2100), heard.append)
    assert heard[-1] == 1.0 and done > 0
    expected = pooled(dense(site, 0, 0, has_first=True), 4, "mean")
    torch.testing.assert_close(found.tile(4, 0, 0, "mean").values, expected)


def test_the_shared_scale_leaves_out_queries_without_a_choice() -> None:
    site = make_site(100, 100, mask=gf.Causal())
    found = Pyramid(site, 0)
    found.survey(slice(0, 100))
    peaks = site.weights(0).amax(-1)[1:].sort().values
    assert found.top(0, "max", True) == pytest.approx(float(peaks[-2]))  # 1 of 99 may exceed it
    assert found.top(3, "max", True) == found.top(0, "max", True)
    assert 0 < found.top(3, "mean", True) < found.top(0, "mean", True)


def test_heads_and_sequences_that_do_not_exist_are_named() -> None:
    site = make_site(5, 5, H=2, K=1)
    with pytest.raises(gf.GlassformerError, match=r"has heads 0 … 1; got head=2"):
        Pyramid(site, 2)
    with pytest.raises(gf.GlassformerError, match=r"has sequences 0 … 0; got sequence=3"):
        Pyramid(site, 0, 3)
