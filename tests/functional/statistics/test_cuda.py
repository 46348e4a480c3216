"""The Triton kernels against the dense matrix in float64: on a GPU, or in Triton's interpreter."""

import math
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

import glassformer as gf
import packed_batches
from closeness import assert_close, assert_same, assert_zero
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring, check_scoring
from glassformer.functional.masks.limits import Limits
from glassformer.functional.statistics import cuda, packed
from glassformer.functional.statistics.cuda import refusal
from glassformer.functional.statistics.pooling import Map
from glassformer.functional.statistics.summary import AttentionStatistics
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

B, H, K, D = 2, 2, 1, 16
HALF_AND_SINGLE = (torch.bfloat16, torch.float16, torch.float32)


@pytest.mark.plain
def test_the_interpreter_agrees_with_the_definition() -> None:
    check_in_interpreter(__file__)


def operands(
    L: int, S: int, dtype: torch.dtype = torch.float32, heads: tuple[int, int] = (H, K)
) -> tuple[Tensor, ...]:
    return tuple(
        torch.randn(B, h, n, D).to(DEVICE, dtype) for h, n in zip(heads, (L, S), strict=True)
    )


def scoring(q: Tensor, k: Tensor, **options: Any) -> Scoring:
    return check_scoring(q, k, **dict.fromkeys(("mask", "bias", "scale", "softcap")) | options)


def assert_like_dense(got: AttentionStatistics, weights: Tensor, atol: float = 1e-5) -> None:
    """Every statistic within atol of that of the whole matrix, relative where values exceed 1."""
    L, S = weights.shape[-2:]
    stand, place = (torch.arange(*n, device=weights.device) for n in ((S - L, S), (0, S)))
    names = ("entropy", "peak", "distance", "received")
    found = {name: value for name in names if (value := getattr(got, name)) is not None}
    expected = {
        "entropy": torch.special.entr(weights).sum(-1),
        "peak": weights.amax(-1),
        "distance": (weights * (place - stand[:, None]).abs()).sum(-1),
        "received": weights.sum(-2),
    }
    if got.map is not None:
        found |= {"mass": got.map.mass, "maximum": got.map.maximum}
        expected |= pooled(weights, got.map)
    for name, value in found.items():
        assert value.dtype == torch.float32 and value.is_contiguous()
        unit = max(1.0, expected[name].abs().max().item())
        assert_close(value.double() / unit, expected[name] / unit, atol, name)


def pooled(weights: Tensor, like: Map) -> dict[str, Tensor]:
    (L, S), (M, N) = weights.shape[-2:], like.mass.shape[-2:]
    assert like.row_edges.tolist() == [a * L // M for a in range(M + 1)]
    assert like.col_edges.tolist() == [b * S // N for b in range(N + 1)]
    bands = [weights[:, :, a * L // M : (a + 1) * L // M] for a in range(M)]
    cells = [band[..., b * S // N : (b + 1) * S // N] for band in bands for b in range(N)]
    return {
        "mass": torch.stack([c.sum((-1, -2)) for c in cells], -1).unflatten(-1, (M, N)),
        "maximum": torch.stack([c.amax((-1, -2)) for c in cells], -1).unflatten(-1, (M, N)),
    }


def check(
    q: Tensor, k: Tensor, map_size: Any = None, *, distance: bool = True, **options: Any
) -> AttentionStatistics:
    """The kernels do it, and agree with the definition."""
    assert refusal(q, scoring(q, k, **options), map_size=map_size) is None
    got = gf.attention_statistics(q, k, **options, map_size=map_size, distance=distance)
    assert (got.distance is not None) == distance
    exact = q.double(), k.double()
    assert_like_dense(got, gf.attention_weights(*exact, **options))
    assert_close(got.lse.double(), gf.attention_lse(*exact, **options), 1e-5, "lse")
    return got


MASKS = {
    "none": lambda on: None,
    "causal": lambda on: gf.Causal(),
    "causal at 5": lambda on: gf.Causal(offset=5),
    "causal before all keys": lambda on: gf.Causal(offset=-300),
    "causal at each": lambda on: gf.Causal(offset=torch.tensor([-40, 71], device=on)),
    "window": lambda on: gf.Window(left=29, right=11),
    "window to the right": lambda on: gf.Window(right=3, offset=17),
    "causal & window": lambda on: gf.Causal() & gf.Window(left=40),
    "window of a tensor": lambda on: gf.Causal() & gf.Window(left=torch.tensor(40, device=on)),
    "padding": lambda on: gf.Padding([101, 37]),
    "padding to 0": lambda on: gf.Padding([101, 0]),
    "padding on the left": lambda on: gf.Padding([90, 33], side="left"),
    "padding of both": lambda on: gf.Causal() & gf.Padding([90, 33], of="both", side="left"),
    "padding of queries": lambda on: gf.Padding([90, 0], of="queries"),
    "prefix": lambda on: gf.Prefix(77) & ~gf.Prefix(torch.tensor([5, 60], device=on)),
}


@needs_kernels
@pytest.mark.parametrize("map_size", [None, 2, 5])
@pytest.mark.parametrize("mask", ["none", "causal & window"])
def test_without_distance_the_rest_is_the_same(mask: str, map_size: int | None) -> None:
    q, k = operands(256, 64)
    check(q, k, map_size, distance=False, mask=MASKS[mask](DEVICE))


@pytest.mark.parametrize("mask", list(MASKS)[1:])
@pytest.mark.parametrize(("L", "S"), [(150, 101), (101, 150)])
def test_limits_allow_what_the_mask_allows(mask: str, L: int, S: int) -> None:
    cpu, extent = torch.device("cpu"), Extent(B, H, L, S)
    value = MASKS[mask](cpu).fit_to(extent, cpu)
    numbers = Limits.of(value, extent).tensor(B, cpu).view(-1, 6, 1, 1).unbind(1)
    low, high, first_key, stop_key, first_query, stop_query = numbers
    i, j = torch.arange(L)[:, None], torch.arange(S)
    band = (i + low <= j) & (j <= i + high)
    inside = (first_key <= j) & (j < stop_key) & (first_query <= i) & (i < stop_query)
    dense = value.dense(L, S, batch=B)[:, 0]
    assert_same((band & inside).expand(B, L, S), dense.expand(B, L, S))


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("mask", MASKS)
def test_every_mask(mask: str) -> None:
    got = check(*operands(103, 101), mask=MASKS[mask](torch.device(DEVICE)), map_size=(2, 3))
    if mask == "padding to 0":
        for name in ("entropy", "peak", "distance", "received"):
            assert_zero(getattr(got, name)[1])
        assert got.lse[1].isneginf().all()
    if mask == "causal before all keys":
        assert_zero(got.map.mass)


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("mask", ["none", "causal", "window"])
@pytest.mark.parametrize(
    ("L", "S", "map_size"),
    [
        (128, 256, 2),  # cells of whole tiles and whole blocks
        (256, 512, 2),  # cells of two tiles and two blocks
        (130, 131, 1),
        (200, 70, (2, 5)),  # an edge inside a tile
        (67, 61, (9, 7)),  # many
        (5, 3, 30),  # more cells than tokens
        (1, 77, 4),
        (77, 1, None),
    ],
)
def test_every_way_of_cutting_the_map(mask: str, L: int, S: int, map_size: Any) -> None:
    q, k = operands(L, S, heads=(1, 1))
    check(q, k, mask=MASKS[mask](torch.device(DEVICE)), map_size=map_size)


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize(
    "options",
    [
        {"scale": 0.7},
        {"scale": -0.3},
        {"softcap": 2.0},
        {"bias": "alibi"},
        {"bias": "alibi", "softcap": 3.0, "scale": 1.0, "mask": gf.Causal()},
    ],
    ids=str,
)
def test_every_scoring(options: dict[str, Any]) -> None:
    if "bias" in options:
        options = options | {"bias": gf.ALiBi.of_heads(H, DEVICE)}
    check(*operands(99, 210), **options, map_size=2)


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
@pytest.mark.parametrize("width", [1, 24])
def test_every_dtype_in_any_layout(dtype: torch.dtype, width: int) -> None:
    """Also heads after the length, as projections leave them, and the width not last."""
    q = torch.randn(B, 83, H, width).to(DEVICE, dtype).transpose(1, 2)
    k = torch.randn(B, K, width, 131).to(DEVICE, dtype).transpose(2, 3)
    check(q, k, mask=gf.Causal(), map_size=(3, 2))


@needs_kernels
@pytest.mark.plain
def test_lse_may_be_that_of_more_keys() -> None:
    """Weights are exp(score − lse) also where lse is told: then rows need not sum to 1."""
    q, k = operands(90, 140)
    weights = gf.attention_weights(q.double(), k.double())
    lse, part = gf.attention_lse(q, k), k[:, :, :90]
    assert_same(lse, gf.attention_statistics(q, k).lse)
    got = gf.attention_statistics(q, part, lse=lse, map_size=3)
    assert_like_dense(got, weights[..., :90])
    assert_same(got.lse, lse)
    assert got.lse.data_ptr() != lse.data_ptr()


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("which", ["q", "k"])
def test_nan_is_never_hidden(which: str) -> None:
    q, k = operands(70, 70, heads=(1, 1))
    (q if which == "q" else k)[1, 0, 40, 3] = torch.nan
    got = gf.attention_statistics(q, k, mask=gf.Causal(), map_size=7)
    seen = slice(40, 41) if which == "q" else slice(40, None)
    for name in ("lse", "entropy", "peak", "distance"):
        assert getattr(got, name)[1, 0, seen].isnan().all(), name
        assert getattr(got, name)[0].isfinite().all()
    assert got.received[1, 0, :41].isnan().all()
    for name in ("mass", "maximum"):
        assert getattr(got.map, name)[1, 0, 4, :5].isnan().all(), name
        assert getattr(got.map, name)[0].isfinite().all()


@needs_kernels
@pytest.mark.plain
def test_huge_scores_stay_finite() -> None:
    q = torch.full((1, 1, 3, 1), 100.0, device=DEVICE)
    k = torch.tensor([100.0, -100.0, 90.0, 0.0], device=DEVICE).view(1, 1, 4, 1)
    got = gf.attention_statistics(q, k, scale=1.0, map_size=2)
    # In units of log 2 a score of 10,000 is 14,427, where neighbours in float32 are 1e-3 apart.
    assert_close(got.entropy, torch.zeros_like(got.entropy), 1e-3)
    expected = torch.tensor([[[3.0, 0.0, 0.0, 0.0]]], device=DEVICE)
    assert_close(got.received, expected, 3e-3)


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
def test_scores_far_below_zero_still_share_out_one(dtype: torch.dtype) -> None:
    """What pads a block must weigh nothing also where exp(−lse) would overflow."""
    q = torch.full((1, 1, 200, 1), 64.0, device=DEVICE, dtype=dtype)
    k = torch.full((1, 1, 75, 1), -64.0, device=DEVICE, dtype=dtype)
    got = gf.attention_statistics(q, k, scale=1.0, map_size=2)
    assert_close(got.lse, torch.full_like(got.lse, math.log(75) - 4096), 1e-3)
    assert_close(got.received, torch.full_like(got.received, 200 / 75), 3e-3)
    assert_close(got.map.share.sum(-1), torch.ones(1, 1, 2, device=DEVICE), 1e-3)


@needs_kernels
@pytest.mark.plain
def test_progress_is_told_and_no_graph_kept() -> None:
    q, k = (x.requires_grad_() for x in operands(20, 20, heads=(1, 1)))
    told: list[float] = []
    got = gf.attention_statistics(q, k, progress=told.append)
    assert told == [1.0]
    assert got.map is None and got.top is None
    assert not got.entropy.requires_grad


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize(
    ("mask", "block", "softcap"),
    [("none", 16, None), ("causal", None, 2.0), ("window", 16, None)],
)
def test_packed_batches_and_paged_caches(
    mask: str, block: int | None, softcap: float | None
) -> None:
    """One launch for all sequences: long and short ones, and without queries or keys."""
    lengths = [(66, 70), (0, 9), (5, 0), (1, 131)]
    batch = packed_batches.make_batch(lengths, heads=(2, 1), width=D, block=block, device=DEVICE)
    rule = packed_batches.MASKS[mask]
    sinks = torch.randn(2, device=DEVICE)
    options: dict[str, Any] = {"observe": 4, "top": 3, "sinks": sinks, "softcap": softcap}
    expected = packed_batches.dense_statistics(batch, rule[1], **options)
    within = [m for m, _ in packed_batches.WITHIN] if mask == "window" else ()
    with mock.patch.object(packed, "measure", None):  # which would go from one to the next
        got = gf.attention_statistics(
            batch.q, batch.k, packed=batch.packed, mask=rule[0], within=within, **options
        )
    packed_batches.assert_like_dense(got, expected)


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
def test_packed_with_lse_known_and_alibi(dtype: torch.dtype) -> None:
    lengths = [(1, 40), (67, 67), (1, 1)]
    batch = packed_batches.make_batch(lengths, heads=(2, 1), width=24, device=DEVICE, dtype=dtype)
    slopes = gf.ALiBi.of_heads(2, DEVICE).slopes
    rule = packed_batches.MASKS["causal"]
    expected = packed_batches.dense_statistics(batch, rule[1], slopes=slopes)
    got = gf.attention_statistics(
        batch.q,
        batch.k,
        packed=batch.packed,
        mask=rule[0],
        bias=gf.ALiBi(slopes),
        lse=expected["lse"].float(),
        distance=False,
    )
    assert got.distance is None
    packed_batches.assert_like_dense(got, expected)


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("top", [1, 5])
def test_the_strongest_keys(top: int) -> None:
    q, k = operands(40, 70, heads=(1, 1))
    k[0, 0, 9] = 0.0
    mask = gf.Causal() & gf.Window(left=40)
    assert refusal(q, scoring(q, k, mask=mask), top=top) is None
    got = gf.attention_statistics(q, k, mask=mask, top=top, scale=-0.4).top
    weights = gf.attention_weights(q.double(), k.double(), mask=mask, scale=-0.4)
    assert_close(got.weights.double(), weights.topk(top, dim=-1).values, 1e-5)
    assert_same(got.indices == -1, got.weights == 0)
    picked = weights.gather(-1, got.indices.clamp(min=0)) * (got.indices >= 0)
    assert_close(picked, got.weights.double(), 1e-5)


@needs_kernels
@pytest.mark.plain
@pytest.mark.parametrize("mask", ["causal", "padding of both"])
def test_shares_within_masks_and_of_the_last_queries(mask: str) -> None:
    q, k = operands(103, 131, heads=(1, 1))
    within = (gf.Prefix(3), gf.Prefix(3) | gf.Window(left=40), gf.Padding([90, 33]))
    options = {"mask": MASKS[mask](torch.device(DEVICE))}
    assert refusal(q, scoring(q, k, **options), within=within[:2], observe=7) is None
    got = gf.attention_statistics(q, k, **options, within=within, observe=70)
    weights = gf.attention_weights(q.double(), k.double(), **options)
    for share, part in zip(got.within, within, strict=True):
        inside = part.dense(103, 131, batch=B, device=DEVICE)
        assert_close(share.double(), (weights * inside).sum(-1), 1e-5)
    assert_close(got.observed.double(), weights[:, :, -70:].sum(2), 1e-5)
    assert_close(got.received.double(), weights.sum(2), 1e-5)


@pytest.mark.skipif(INTERPRETED, reason="there the kernels do run on the CPU")
def test_elsewhere_the_streaming_pass_runs() -> None:
    q = torch.randn(1, 1, 5, 8)
    assert refusal(q, scoring(q, q)) == "the kernels run on CUDA, not on cpu"
    assert refusal(q.to("meta"), scoring(q, q)) == "the kernels run on CUDA, not on meta"


@needs_kernels
@pytest.mark.plain
def test_what_the_kernels_refuse() -> None:
    q, k = operands(9, 11)

    def why(q: Tensor = q, k: Tensor = k, **options: Any) -> str | None:
        asked = {name: options.pop(name, None) for name in ("map_size", "top")}
        return refusal(q, scoring(q, k, **options), **asked)

    assert why() is None
    assert why(bias=gf.ALiBi.of_heads(H, DEVICE)) is None
    assert "float32" in why(q.double(), k.double())
    wide = torch.randn(1, 1, 4, 129, device=DEVICE)
    assert "heads of at most 128 in torch.float32; got 129" in why(wide, wide)
    assert why(wide.half(), wide.half()) is None
    assert "nothing to attend to" in why(q[:, :, :0])
    assert "the 64 strongest keys; got top=65" in why(top=65)
    for mask in (
        gf.Documents(torch.zeros(11, dtype=torch.long, device=DEVICE)),
        gf.Causal() | gf.Prefix(3),
        ~gf.Causal(),
        gf.Causal() & torch.ones(9, 11, dtype=torch.bool, device=DEVICE),
    ):
        assert "support only Causal, Window" in why(mask=mask)
    slopes = gf.ALiBi.of_heads(H, DEVICE).slopes
    for bias in (
        gf.ALiBi(slopes, offset=0),
        gf.ALiBi(slopes, offset=torch.tensor(2, device=DEVICE)),
        gf.ALiBi(slopes) + torch.zeros(9, 11, device=DEVICE),
        gf.RelativeBuckets(torch.zeros(32, H, device=DEVICE)),
    ):
        assert "the only bias" in why(bias=bias)
    assert why(bias=gf.ALiBi(slopes, offset=2)) is None
    assert "and two by |" in refusal(q, scoring(q, k), within=(~gf.Causal(),))
    layout = gf.Packed([0, 9], [0, 11])
    for mask in (gf.Causal(offset=2), gf.Padding([9, 9]), gf.Window(left=torch.tensor(2))):
        assert "packed" in refusal(q, scoring(q, k)._replace(mask=mask), packed=layout)
    assert "the only bias" in refusal(
        q, scoring(q, k, bias=gf.ALiBi(slopes, offset=2)), packed=layout
    )
    assert "31 bits; got 9 queries, 11 keys and map_size=(0, 3)" in why(map_size=(0, 3))


@needs_kernels
@pytest.mark.plain
def test_what_is_refused_is_streamed_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = operands(70, 90)
    fused = gf.attention_statistics(q, k, mask=gf.Causal(), map_size=5)
    lse = gf.attention_lse(q, k, mask=gf.Causal())
    monkeypatch.setattr(cuda, "refusal", lambda *_, **__: "not today")
    streamed = gf.attention_statistics(q, k, mask=gf.Causal(), map_size=5)
    for name in ("lse", "entropy", "peak", "distance", "received"):
        assert_close(getattr(fused, name), getattr(streamed, name), 1e-4, name)
    for name in ("mass", "maximum", "row_edges", "col_edges"):
        assert_close(getattr(fused.map, name), getattr(streamed.map, name), 1e-4, name)
    assert_close(lse, gf.attention_lse(q, k, mask=gf.Causal()), 1e-5)


LONG = {
    "none": lambda L: None,
    "causal": lambda L: gf.Causal(),
    "causal & window": lambda L: gf.Causal() & gf.Window(left=700),
    "causal & padding": lambda L: gf.Causal() & gf.Padding([L, L // 3]),
}


@pytest.mark.gpu
@pytest.mark.plain
@pytest.mark.parametrize("mask", LONG)
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
@pytest.mark.parametrize(("L", "width", "map_size"), [(4096, 64, 16), (3001, 128, (7, 11))])
def test_thousands_of_tokens(
    dtype: torch.dtype, mask: str, L: int, width: int, map_size: Any
) -> None:
    q, k = (torch.randn(2, h, L, width, device="cuda", dtype=dtype) for h in (2, 1))
    check(q, k, mask=LONG[mask](L), map_size=map_size)


@pytest.mark.gpu
@pytest.mark.plain
def test_more_than_two_to_the_31_numbers() -> None:
    """Places in memory are counted in 64 bits."""
    q = torch.randn(1, 1, 64, 64, device="cuda", dtype=torch.bfloat16)
    many = q.expand(1, 9, 64, 64).repeat(1, 1, 65536, 1)  # 9 · 2²² · 64 numbers
    k = many[:, :1, :128]
    got = gf.attention_statistics(many, k, map_size=(64, 2))
    expected = gf.attention_statistics(q, k, map_size=(1, 2))
    assert_close(got.entropy[:, 8, -64:], expected.entropy[:, 0], 1e-5)
    assert_close(got.map.share[:, 8, -1], expected.map.share[:, 0, 0], 1e-5)
