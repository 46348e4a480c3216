"""Statistics against the dense matrix, in every way of cutting it into tiles."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_close, assert_same, assert_zero
from glassformer.functional.statistics.summary import AttentionStatistics, attention_rows


def dense_statistics(weights: torch.Tensor, map_size: tuple[int, int], top: int) -> dict:
    """The same numbers from the whole matrix, as their definitions say."""
    L, S = weights.shape[-2:]
    M, N = map_size
    away = (torch.arange(S) - torch.arange(S - L, S)[:, None]).abs()
    cells = [
        weights[:, :, a * L // M : (a + 1) * L // M, b * S // N : (b + 1) * S // N]
        for a in range(M)
        for b in range(N)
    ]
    return {
        "entropy": torch.special.entr(weights).sum(-1),
        "peak": weights.amax(-1),
        "distance": (weights * away).sum(-1),
        "received": weights.sum(-2),
        "top": weights.topk(top, dim=-1).values,
        "mass": torch.stack([c.sum((-1, -2)) for c in cells], -1).unflatten(-1, (M, N)),
        "maximum": torch.stack([c.amax((-1, -2)) for c in cells], -1).unflatten(-1, (M, N)),
    }


def assert_statistics(got: AttentionStatistics, weights: torch.Tensor, atol: float) -> None:
    """Everything within atol, relative where values exceed 1."""
    assert got.map is not None and got.top is not None
    size = (got.map.mass.shape[-2], got.map.mass.shape[-1])
    found = {
        "entropy": got.entropy,
        "peak": got.peak,
        "distance": got.distance,
        "received": got.received,
        "top": got.top.weights,
        "mass": got.map.mass,
        "maximum": got.map.maximum,
    }
    expected = dense_statistics(weights, size, got.top.weights.shape[-1])
    for name, value in found.items():
        unit = max(1.0, expected[name].abs().max().item())
        assert_close(value.double() / unit, expected[name] / unit, atol, name)
    at = got.top.indices
    assert_same(at == -1, got.top.weights == 0)
    picked = weights.gather(-1, at.clamp(min=0)) * (at >= 0)
    assert_close(picked, got.top.weights.double(), atol, "top indices")


ALL_MASKS = {
    "none": lambda L: None,
    "causal": lambda L: gf.Causal(),
    "window": lambda L: gf.Window(left=29, right=11),
    "padding": lambda L: gf.Padding([L - 3]),
    "prefix": lambda L: gf.Prefix(L // 3),
    "documents": lambda L: gf.Documents(torch.arange(L) // 97),
    "explicit": lambda L: gf.Explicit(
        torch.rand(L, L, generator=torch.Generator().manual_seed(1)) > 0.7
    ),
    "causal & window": lambda L: gf.Causal() & gf.Window(left=100),
    "causal & padding": lambda L: gf.Causal() & gf.Padding([L // 2], of="both"),
    "causal | prefix": lambda L: gf.Causal() | gf.Prefix(33),
    "documents & causal": lambda L: gf.Documents(torch.arange(L) // 97) & gf.Causal(),
    "~window": lambda L: ~gf.Window(left=29, right=11),
}


@pytest.mark.parametrize("mask", ALL_MASKS)
@pytest.mark.parametrize("biased", [False, True])
def test_at_2048_tokens_with_grouped_heads(mask: str, biased: bool) -> None:
    """1e-5 in float32, for every kind of mask, with and without a bias."""
    L = 2048
    q, k = torch.randn(1, 2, L, 16), torch.randn(1, 1, L, 16)
    options = {"mask": ALL_MASKS[mask](L)}
    if biased:
        # Small slopes: a float32 score of −400 is itself only known to 2e-5.
        options["bias"] = gf.ALiBi(torch.tensor([0.005, 0.02])) + torch.randn(1, 2, 1, L)
    got = gf.attention_statistics(q, k, **options, map_size=(100, 37), top=3)
    weights = gf.attention_weights(q.double(), k.double(), **options)
    assert_statistics(got, weights, 1e-5)
    rows, cols = slice(777, 801), torch.tensor([5, 2047, 780, 0])
    tile = gf.attention_tile(q, k, got.lse, rows, cols, **options)
    assert_close(tile.double(), weights[:, :, rows][..., cols], 1e-5)
    assert_close(attention_rows(q, k, rows, **options).double(), weights[:, :, rows], 1e-5)


@given(
    L=st.integers(1, 23),
    S=st.integers(1, 23),
    M=st.integers(1, 30),
    N=st.integers(1, 30),
    top=st.integers(1, 9),
    budget=st.integers(1, 20_000),
    causal=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_any_size_and_any_tiles(L, S, M, N, top, budget, causal, seed) -> None:
    torch.manual_seed(seed)
    q, k = (torch.randn(2, h, n, 5, dtype=torch.float64) for h, n in ((6, L), (3, S)))
    mask = gf.Causal() if causal else None
    with gf.memory_budget(budget):
        got = gf.attention_statistics(q, k, mask=mask, map_size=(M, N), top=top, softcap=2.0)
    weights = gf.attention_weights(q, k, mask=mask, softcap=2.0)
    assert_close(attention_rows(q, k, slice(None), mask=mask, softcap=2.0), weights, 1e-12)
    assert got.map is not None and got.map.mass.shape[-2:] == (min(M, L), min(N, S))
    assert_statistics(got, weights, 1e-11)


@given(
    L=st.integers(1, 23),
    S=st.integers(1, 23),
    observe=st.integers(1, 30),
    budget=st.integers(1000, 20_000),
    mask=st.sampled_from(["none", "causal", "window"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=20)
def test_shares_within_masks_sinks_and_last_queries(L, S, observe, budget, mask, seed) -> None:
    torch.manual_seed(seed)
    q, k = (torch.randn(2, h, n, 5, dtype=torch.float64) for h, n in ((6, L), (3, S)))
    sinks = torch.randn(6)
    allowed = {"none": None, "causal": gf.Causal(), "window": gf.Window(left=3, right=2)}[mask]
    parts = [gf.Prefix(min(2, S)), ~gf.Window(left=2), torch.rand(6, L, S) > 0.5]
    parts[2] = gf.Explicit(parts[2][None])
    with gf.memory_budget(budget):
        got = gf.attention_statistics(
            q, k, mask=allowed, within=parts, observe=observe, sinks=sinks
        )
    # The sink is one more key, which the bias gives its score and every query sees.
    more = torch.nn.functional.pad(k, (0, 0, 0, 1))
    bias = torch.nn.functional.pad(torch.zeros(1, 6, L, S), (0, 1))
    bias[..., -1] = sinks.view(1, -1, 1)
    seen = torch.ones(1, 1, L, S, dtype=torch.bool) if allowed is None else allowed.dense(L, S)
    seen = torch.nn.functional.pad(seen, (0, 1), value=True)
    every = gf.attention_weights(q, more, mask=seen, bias=bias.double())
    weights = every[..., :-1]
    for share, part in zip(got.within, parts, strict=True):
        inside = (weights * part.dense(L, S, n_heads=6)).sum(-1)
        assert_close(share, inside, 1e-11)
    assert_close(got.observed, weights[:, :, max(L - observe, 0) :].sum(2), 1e-11)
    assert_close(got.received, weights.sum(2), 1e-11)
    assert_close(got.sink, every[..., -1], 1e-11)
    assert_close(got.entropy, torch.special.entr(every).sum(-1), 1e-11)
    assert_close(got.peak, weights.amax(-1), 1e-11)


def test_the_largest_score_of_each_head() -> None:
    q, k = torch.randn(2, 6, 17, 5), torch.randn(2, 3, 19, 5)
    mask = gf.Causal() & gf.Padding([19, 0])
    got = gf.attention_statistics(q, k, mask=mask, scale=3.0)
    scores = 3 * q @ k.repeat_interleave(2, dim=1).mT
    seen = mask.dense(17, 19, batch=2)
    expected = scores.masked_fill(~seen, -torch.inf).amax((-1, -2))
    assert_close(got.largest, expected, 2e-5)
    assert got.largest[1].isneginf().all()
    assert gf.attention_statistics(q[:, :, :0], k).largest.isneginf().all()


@pytest.mark.plain
def test_what_cannot_be_asked_for() -> None:
    q = torch.randn(1, 2, 5, 8)
    with pytest.raises(gf.GlassformerError, match="observe must be at least 1; got 0"):
        gf.attention_statistics(q, q, observe=0)
    with pytest.raises(gf.GlassformerError, match=r"each of 2 heads; got shape \(3,\)"):
        gf.attention_statistics(q, q, sinks=torch.zeros(3))


def test_lse_is_the_log_sum_exp_and_saves_a_pass() -> None:
    q, k = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 11, 5)
    lse = gf.attention_lse(q, k, mask=gf.Padding([11, 0]))
    expected = (q @ k.mT * 5**-0.5).logsumexp(-1)
    assert_close(lse[0], expected[0], 1e-6)
    assert lse[1].isneginf().all()
    got = gf.attention_statistics(q, k, mask=gf.Padding([11, 0]), lse=lse, map_size=4)
    assert_same(got.lse, lse)
    again = gf.attention_statistics(q, k, mask=gf.Padding([11, 0]), map_size=4)
    assert_close(got.map.mass, again.map.mass, 1e-6)


def test_entropy_is_that_of_attention_over_keys() -> None:
    """H = lse − scale · q · Attn(q, k, k): the identity that lets a fused kernel find it."""
    q, k = torch.randn(2, 1, 3, 29, 16, dtype=torch.float64).unbind(0)
    got = gf.attention_statistics(q, k)
    attended = gf.attention(q, k, k)
    assert_close(got.entropy, got.lse - (q * attended).sum(-1) / 4, 1e-12)


def test_even_attention_has_known_numbers() -> None:
    q, k = torch.zeros(1, 1, 4, 8), torch.randn(1, 1, 4, 8)
    got = gf.attention_statistics(q, k, mask=gf.Causal(), map_size=2)
    steps = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert_close(got.entropy[0, 0], steps.log(), 1e-6)
    assert_close(got.distance[0, 0], (steps - 1) / 2, 1e-6)
    assert_close(got.peak[0, 0], 1 / steps, 1e-6)
    assert_close(got.map.mass[0, 0], torch.tensor([[2.0, 0.0], [7 / 6, 5 / 6]]), 1e-6)
    assert_close(got.map.share[0, 0], torch.tensor([[1.0, 0.0], [7 / 12, 5 / 12]]), 1e-6)
    assert got.map.row_edges.tolist() == [0, 2, 4]
    assert got.top is None


def test_rows_with_nothing_allowed_say_nothing() -> None:
    q, k = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 7, 8)
    mask = gf.Padding([3], of="queries")
    got = gf.attention_statistics(q, k, mask=mask, map_size=5, top=2)
    for name in ("entropy", "peak", "distance"):
        assert_zero(getattr(got, name)[:, :, 3:])
    assert got.lse[:, :, 3:].isneginf().all()
    assert_zero(got.map.mass[:, :, 3:])
    assert_same(got.top.indices[:, :, 3:], torch.full((1, 2, 2, 2), -1))
    assert_zero(gf.attention_tile(q, k, got.lse, [4], slice(0, 7), mask=mask))
    assert_zero(attention_rows(q, k, [4], mask=mask))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_low_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    q, k = (torch.randn(1, 2, 31, 8).to(dtype) for _ in range(2))
    got = gf.attention_statistics(q, k, map_size=7, top=3)
    assert got.lse.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert_statistics(got, gf.attention_weights(q.double(), k.double()), 1e-6)


def test_huge_scores_stay_finite() -> None:
    q = torch.full((1, 1, 3, 1), 100.0)
    k = torch.tensor([100.0, -100.0, 90.0, 0.0]).view(1, 1, 4, 1)
    got = gf.attention_statistics(q, k, scale=1.0, map_size=2, top=4)
    assert_zero(got.entropy)
    assert_same(got.received, torch.tensor([[[3.0, 0.0, 0.0, 0.0]]]))
    assert_same(got.top.indices[0, 0, 0], torch.tensor([0, -1, -1, -1]))


def test_progress_is_told() -> None:
    q = torch.randn(1, 1, 40, 8)
    told = []
    with gf.memory_budget(24 * 40 * 20):
        gf.attention_statistics(q, q, progress=told.append)
    assert len(told) > 1
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_statistics_need_no_graph() -> None:
    q = torch.randn(1, 1, 5, 8, requires_grad=True)
    got = gf.attention_statistics(q, q, map_size=2)
    assert not got.lse.requires_grad and not got.map.mass.requires_grad
    assert not gf.attention_tile(q, q, got.lse, [1], [1]).requires_grad


def test_the_map_takes_every_weight_once() -> None:
    q, k = torch.randn(1, 1, 19, 8), torch.randn(1, 1, 23, 8)
    with gf.memory_budget(3000):
        got = gf.attention_statistics(q, k, map_size=(6, 5))
    assert_close(got.map.mass.sum((-1, -2)), torch.full((1, 1), 19.0), 1e-5)
    assert_close(got.map.share.sum(-1), torch.ones(1, 1, 6), 1e-5)
