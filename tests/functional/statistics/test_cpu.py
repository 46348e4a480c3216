"""The kernel in C gives the statistics of the streaming pass in float64."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.functional.checks import check_scoring
from glassformer.functional.statistics import cpu, streaming

pytestmark = pytest.mark.skipif(cpu.find_kernel() is None, reason="no C compiler")

MASKS = {
    "none": None,
    "causal": gf.Causal(),
    "window": gf.Causal() & gf.Window(31),
    "padding": gf.Padding([100, 151]) & gf.Causal(),
    "left padding": gf.Padding([100, 173], side="left", of="keys"),
    "rows hidden": gf.Padding([100, 151], of="queries"),
    "prefix": ~gf.Prefix(5),
    "offset": gf.Causal(offset=torch.tensor([3, 40])),
}


def measure(q, k, mask, *, map_size=(37, 29), known=None, progress=None, positions=None):
    options = {"bias": None, "scale": -0.21, "softcap": None}
    asked = {"map_size": map_size, "top": None, "query_positions": positions}
    scoring = check_scoring(q, k, mask=mask, **options)
    assert cpu.refusal(q, scoring, **asked) is None
    got = cpu.measure(q, k, scoring, lse=known, distance=True, progress=progress, **asked)
    q, k = q.double(), k.double()
    exact = check_scoring(q, k, mask=mask, **options)
    expected = streaming.measure(q, k, exact, lse=None, distance=True, progress=None, **asked)
    return got, expected


def assert_equal_statistics(got, expected) -> None:
    for name in ("entropy", "peak", "distance", "received"):
        scale = expected[name].abs().clamp(min=1)
        assert_close(got[name].double() / scale, expected[name] / scale, 1e-5)
    assert_same(got["lse"].isneginf(), expected["lse"].isneginf())
    assert_close(got["lse"].clamp(min=-1e3).double(), expected["lse"].clamp(min=-1e3), 1e-5)
    if expected["map"] is not None:
        assert_close(got["map"].mass.double(), expected["map"].mass, 1e-5)
        assert_close(got["map"].maximum.double(), expected["map"].maximum, 1e-5)
        assert_same(got["map"].row_edges, expected["map"].row_edges)
        assert_same(got["map"].col_edges, expected["map"].col_edges)


@pytest.mark.parametrize("heads", [(6, 3), (11, 11)], ids=["grouped", "alone"])
@pytest.mark.parametrize("name", MASKS)
def test_statistics_of_every_kind_of_mask(name: str, heads: tuple[int, int]) -> None:
    H, K = heads
    q, k = 2 * torch.randn(2, H, 151, 19), 2 * torch.randn(2, K, 173, 19)
    assert_equal_statistics(*measure(q, k, MASKS[name]))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_rows_of_one_head_are_shared_by_threads(threads: int) -> None:
    before = torch.get_num_threads()
    q, k = torch.randn(2, 1, 1, 523, 40).unbind(0)
    torch.set_num_threads(threads)
    try:
        assert_equal_statistics(*measure(q, k, gf.Causal()))
    finally:
        torch.set_num_threads(before)


def test_rows_in_any_order_of_positions() -> None:
    q, k = torch.randn(1, 5, 257, 8), torch.randn(1, 5, 211, 8)
    positions = torch.randperm(211).repeat(2)[:257]
    assert_equal_statistics(*measure(q, k, None, map_size=None, positions=positions))


def test_a_known_lse_is_what_weights_are_relative_to() -> None:
    q, k = torch.randn(2, 2, 3, 223, 24).unbind(0)
    scoring = check_scoring(q, k, mask=None, bias=None, scale=None, softcap=None)
    options = {"map_size": 9, "top": None, "query_positions": None, "distance": True}
    lse = streaming.row_lse(q, k, scoring) + 0.7
    got = cpu.measure(q, k, scoring, lse=lse, progress=None, **options)
    expected = streaming.measure(q, k, scoring, lse=lse, progress=None, **options)
    assert_equal_statistics(got, expected)


def test_progress_and_rows_in_pieces(monkeypatch) -> None:
    monkeypatch.setattr(cpu, "AT_ONCE", 1)
    said = []
    q, k = torch.randn(2, 1, 12, 163, 16).unbind(0)
    assert_equal_statistics(*measure(q, k, gf.Causal(), progress=said.append))
    assert len(said) > 9 and said == sorted(said) and said[-1] == 1.0


def test_half_precision_is_widened() -> None:
    q, k = torch.randn(2, 1, 12, 163, 16, dtype=torch.bfloat16).unbind(0)
    assert_equal_statistics(*measure(q, k, gf.Causal()))


def test_nan_and_infinity_stay_in_their_rows() -> None:
    q, k = torch.randn(2, 1, 3, 301, 16).unbind(0)
    q[0, 1, 7], q[0, 2, 290] = torch.nan, 1e38
    k[0, 2, 17] = 1e38
    got, expected = measure(q, k, None, map_size=None)
    for name in ("lse", "entropy", "peak", "distance"):
        assert got[name][0, 1, 7].isnan()
        clean = torch.ones(3, 301, dtype=torch.bool)
        clean[1, 7] = False
        clean[2] = False
        assert_close(got[name][0, clean].double(), expected[name][0, clean], 1e-4)


def test_scores_that_overflow_downwards_weigh_nothing() -> None:
    q, k = torch.full((1, 1, 600, 4), -1e20), torch.zeros(1, 1, 600, 4)
    k[:, :, 300:] = -1e20  # scale is negative: −∞ for these
    got, _ = measure(q, k, None, map_size=None)
    assert_close(got["entropy"], torch.full((1, 1, 600), 300.0).log(), 1e-5)
    assert_same(got["received"][:, :, 300:], torch.zeros(1, 1, 300))


def test_what_it_refuses() -> None:
    q = torch.randn(1, 12, 160, 8)
    scoring = check_scoring(q, q, mask=None, bias=None, scale=None, softcap=None)
    assert cpu.refusal(q, scoring) is None
    assert "float32" in cpu.refusal(q.double(), scoring)
    assert "CPU" in cpu.refusal(q.to("meta"), scoring)
    assert "strongest" in cpu.refusal(q, scoring, top=3)
    assert "cells" in cpu.refusal(q, scoring, map_size=0)
    assert "soft-capping" in cpu.refusal(q, scoring._replace(softcap=2.0))
    dotted = gf.Causal() | gf.Window(1, 1)
    assert "combined by &" in cpu.refusal(q, scoring._replace(mask=dotted))
    with gf.memory_budget(10_000):
        assert "budget" in cpu.refusal(q, scoring)
    few = torch.randn(1, 12, 8, 8)
    little = check_scoring(few, few, mask=None, bias=None, scale=None, softcap=None)
    assert "little work" in cpu.refusal(few, little)


def test_without_a_compiler_pytorch_computes(monkeypatch) -> None:
    q, k = torch.randn(2, 1, 12, 160, 8).unbind(0)
    by_kernel = gf.attention_statistics(q, k, mask=gf.Causal())
    monkeypatch.setattr(cpu, "find_kernel", lambda: None)
    by_torch = gf.attention_statistics(q, k, mask=gf.Causal())
    assert_close(by_kernel.entropy, by_torch.entropy, 1e-5)


@pytest.mark.parametrize("observe", [1, 37, 999])
@pytest.mark.parametrize("name", ["none", "window", "padding", "rows hidden"])
def test_shares_within_other_masks_and_of_the_last_rows(name: str, observe: int) -> None:
    q, k = torch.randn(2, 6, 151, 19), torch.randn(2, 3, 173, 19)
    scoring = check_scoring(q, k, mask=MASKS[name], bias=None, scale=None, softcap=None)
    masks = (gf.Prefix(3), gf.Window(left=17), gf.Prefix(3) | gf.Window(left=17), MASKS["offset"])
    within = tuple(mask.fit_to(scoring.extent, q.device) for mask in masks)
    asked = {"map_size": (5, 7), "top": None, "query_positions": None}
    asked |= {"within": within, "observe": observe}
    assert cpu.refusal(q, scoring, **asked) is None
    got = cpu.measure(q, k, scoring, lse=None, distance=True, progress=None, **asked)
    exact = streaming.measure(
        q.double(), k.double(), scoring, lse=None, distance=True, progress=None, **asked
    )
    assert_equal_statistics(got, exact)
    for a, b in zip(
        (*got["within"], got["observed"]), (*exact["within"], exact["observed"]), strict=True
    ):
        assert_close(a.double(), b, 1e-5)
    assert "two by |" in cpu.refusal(q, scoring, within=(~gf.Causal(),))
