"""Laws that every backend keeps, and the hard cases: empty rows, huge scores, half precision."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_close, assert_same, assert_zero
from glassformer.functional import reference
from glassformer.functional.backends import flex

BACKENDS = ("sdpa", "streaming", "reference")
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
B, H, K, L, S, D, E = 2, 6, 3, 5, 7, 11, 13
backends = pytest.mark.parametrize("backend", BACKENDS)


def operands(
    L: int = L, S: int = S, E: int = E, K: int = K, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, ...]:
    shapes = ((B, H, L, D), (B, K, S, D), (B, K, S, E))
    return tuple(torch.randn(*shape, dtype=dtype) for shape in shapes)


# ── empty rows, huge scores ──


@backends
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tiny_tiles", [False, True])
def test_rows_with_nothing_allowed(backend: str, dtype: torch.dtype, tiny_tiles: bool) -> None:
    q, k, v = (t.requires_grad_() for t in operands(dtype=dtype))
    allowed = torch.rand(B, 1, L, S) > 0.5
    allowed[0, 0, 2] = allowed[1] = False
    with gf.memory_budget(2000 if tiny_tiles else 1 << 26):
        out = gf.attention(q, k, v, mask=allowed, backend=backend)
        dq, dk, dv = torch.autograd.grad(out, (q, k, v), torch.randn_like(out))
    assert_zero(out[0, :, 2])
    assert_zero(out[1])
    assert_zero(dq[0, :, 2])
    for grad in (dq, dk, dv):
        assert_zero(grad[1])
        assert grad[0].isfinite().all()
        assert grad[0].abs().sum() > 0


@backends
@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_of_ten_thousand(backend: str, dtype: torch.dtype) -> None:
    """Scores of ±10⁴: the strongest key takes all, and nothing overflows, forward or backward."""
    q, k, v = operands(dtype=dtype)
    q = torch.zeros_like(q)
    k = torch.zeros_like(k)
    q[..., 0], k[:, :, 4, 0], k[:, :, 1, 0] = 100.0, 100.0, -100.0
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    out = gf.attention(q, k, v, scale=1.0, backend=backend)
    expected = v[:, :, 4].repeat_interleave(H // K, dim=1)[:, :, None].expand_as(out)
    assert_same(out, expected)
    for grad in torch.autograd.grad(out.sum(), (q, k, v)):
        assert grad.isfinite().all()


@backends
def test_half_precision_with_large_negative_biases(backend: str) -> None:
    """A whole row at the lowest float16 is still an ordinary row: softmax does not see a shift."""
    q, k, v = (t.requires_grad_() for t in operands(dtype=torch.float16))
    bias = torch.zeros(L, S, dtype=torch.float16)
    bias[1, 3:] = -30000.0
    bias[2] = torch.finfo(torch.float16).min
    out = gf.attention(q, k, v, bias=bias, backend=backend)
    exact = reference.attention(*(t.double() for t in (q, k, v)), bias=bias.double())
    assert_close(out[:, :, [0, 1, 3, 4]], exact[:, :, [0, 1, 3, 4]].half(), 5e-3)
    assert out.isfinite().all()
    for grad in torch.autograd.grad(out.sum(), (q, k, v)):
        assert grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_short_gradients_in_half_precision_go_through_float32(
    dtype: torch.dtype, autocast: bool
) -> None:
    """PyTorch's CPU gradient for few keys is many times slower in half precision, and rounder."""
    half = tuple(t.requires_grad_() for t in operands(dtype=dtype))
    full = tuple(t.detach().float().requires_grad_() for t in half)
    given = torch.randn(B, H, L, E, dtype=dtype)
    with torch.autocast("cpu", dtype=dtype, enabled=autocast):
        out = gf.attention(*half, mask=gf.Causal())
    assert out.dtype == dtype
    assert_same(out, gf.attention(*full, mask=gf.Causal()).to(dtype))
    with torch.autocast("cpu", dtype=dtype, enabled=autocast):
        grads = torch.autograd.grad(out, half, given)
    exact = torch.autograd.grad(gf.attention(*full, mask=gf.Causal()), full, given.float())
    for grad, expected in zip(grads, exact, strict=True):
        assert_same(grad, expected.to(dtype))


# ── laws ──


@backends
@given(L=st.integers(1, 9), S=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_values_that_are_equal_come_out_equal(backend: str, L: int, S: int, seed: int) -> None:
    """Rows of weights sum to one: the weighted mean of equal values is that value."""
    torch.manual_seed(seed)
    q, k, v = operands(L, S)
    v = v[:, :, :1].expand(B, K, S, E)
    out = gf.attention(q, k, v, backend=backend)
    assert_close(out, v[:, :, :1].repeat_interleave(2, 1).expand_as(out), 1e-12)


@backends
@given(n=st.integers(2, 9), at=st.integers(1, 8), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_the_future_cannot_change_the_past(backend: str, n: int, at: int, seed: int) -> None:
    at = min(at, n - 1)
    torch.manual_seed(seed)
    q, k, v = operands(n, n)
    before = gf.attention(q, k, v, mask=gf.Causal(), backend=backend)
    for t in (q, k, v):
        t[:, :, at:] += 3 * torch.randn_like(t[:, :, at:])
    after = gf.attention(q, k, v, mask=gf.Causal(), backend=backend)
    assert_close(after[:, :, :at], before[:, :, :at], 1e-12)
    assert (after[:, :, at:] - before[:, :, at:]).abs().amax((0, 1, 3)).min() > 1e-6


@backends
@pytest.mark.parametrize(("L", "S"), [(4, 4), (3, 5), (5, 3)])
def test_the_jacobian_is_causal(backend: str, L: int, S: int) -> None:
    """∂out[i]/∂k[j] and ∂out[i]/∂v[j] vanish exactly where key j lies ahead, and only there."""
    q, k, v = (t[:1].requires_grad_() for t in operands(L, S))
    out = gf.attention(q, k, v, mask=gf.Causal(), backend=backend)
    reach = torch.zeros(2, L, S)
    back = torch.randn_like(out)
    for i in range(L):
        grads = torch.autograd.grad(out[:, :, i], (k, v), back[:, :, i], retain_graph=True)
        reach[:, i] = torch.stack([g.abs().amax((0, 1, 3)) for g in grads])
    allowed = gf.Causal().dense(L, S)[0, 0]
    assert_zero(reach[:, ~allowed])
    assert_same(reach[1] > 1e-6, allowed)
    alone = allowed.sum(-1, keepdim=True) == 1  # one key gets all, whatever its score
    assert_same(reach[0] > 1e-6, allowed & ~alone)


@backends
@given(n=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_permuting_tokens_permutes_outputs(backend: str, n: int, seed: int) -> None:
    torch.manual_seed(seed)
    order = torch.randperm(n)
    q, k, v = operands(n, n)
    straight = gf.attention(q, k, v, backend=backend)
    permuted = gf.attention(*(t[:, :, order] for t in (q, k, v)), backend=backend)
    assert_close(permuted, straight[:, :, order], 1e-12)


@backends
@given(K=st.sampled_from([1, 2, 3, 6]), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_grouped_heads_are_repeated_heads(backend: str, K: int, seed: int) -> None:
    torch.manual_seed(seed)
    q, k, v = operands(K=K)
    repeated = (t.repeat_interleave(H // K, dim=1) for t in (k, v))
    grouped = gf.attention(q, k, v, mask=gf.Causal(), backend=backend)
    assert_close(grouped, gf.attention(q, *repeated, mask=gf.Causal(), backend=backend), 1e-12)


@backends
@given(cut=st.lists(st.integers(1, 10), max_size=4), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_pieces_with_kept_keys_are_the_whole(backend: str, cut: list[int], seed: int) -> None:
    """Queries in pieces, each against all keys so far: the same as all at once."""
    torch.manual_seed(seed)
    q, k, v = operands(11, 11)
    whole = gf.attention(q, k, v, mask=gf.Causal(), backend=backend)
    edges = sorted({0, 11, *cut})
    pieces = [
        gf.attention(q[:, :, a:b], k[:, :, :b], v[:, :, :b], mask=gf.Causal(), backend=backend)
        for a, b in pairwise(edges)
    ]
    assert_close(torch.cat(pieces, dim=2), whole, 1e-12)


@backends
def test_inputs_may_lie_in_memory_as_they_like(backend: str) -> None:
    straight = operands(L=7, S=7)
    strided = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in straight]
    sliced = [torch.cat([t, t], dim=-1)[..., : t.shape[-1]] for t in straight]
    expected = gf.attention(*straight, mask=gf.Causal(), backend=backend)
    for inputs in (strided, sliced):
        assert not inputs[0].is_contiguous()
        got = gf.attention(*inputs, mask=gf.Causal(), backend=backend)
        assert_close(got, expected, 1e-12)


# ── dropout ──


@pytest.mark.parametrize("backend", ["sdpa", "streaming", "reference"])
def test_dropout_drops_weights_and_scales_the_rest(backend: str) -> None:
    q, k, _ = operands(S=401, E=401)
    v = torch.eye(401, dtype=torch.float64).expand(B, K, 401, 401)
    with gf.memory_budget(1 << 18):
        out = gf.attention(q, k, v, dropout=0.25, backend=backend)
    weights = gf.attention_weights(q, k)
    kept = out != 0
    assert_close(out[kept], (weights / 0.75)[kept], 1e-12)
    assert 0.73 < kept.double().mean() < 0.77
    per_key = kept.double().mean((0, 1, 2))
    assert per_key.min() > 0.3 and per_key.std() < 0.1


def test_streaming_dropout_is_seeded_and_its_gradient_uses_the_same_draw() -> None:
    q, k, v = (t.requires_grad_() for t in operands(L=9, S=23))

    def run() -> torch.Tensor:
        torch.manual_seed(5)
        return gf.attention(q, k, v, dropout=0.4, backend="streaming")

    with gf.memory_budget(3000):
        out = run()
        assert_same(out, run())
        assert not torch.equal(out, gf.attention(q, k, v, dropout=0.4, backend="streaming"))
        assert torch.autograd.gradcheck(
            lambda q, k, v: (
                torch.manual_seed(5),
                gf.attention(q, k, v, dropout=0.4, backend="streaming"),
            )[1],
            (q[:1, :2, :2, :3], k[:1, :1, :4, :3], v[:1, :1, :4, :2]),
        )


# ── streaming ──


@pytest.mark.parametrize("budget", [1, 300, 1 << 26])
@pytest.mark.parametrize("softcap", [None, 1.7])
def test_streaming_gradients_are_the_derivative(budget: int, softcap: float | None) -> None:
    shapes = ((1, 2, 3, 2), (1, 1, 4, 2), (1, 1, 4, 3), (8, 2))
    q, k, v, table = (torch.randn(*n, dtype=torch.float64, requires_grad=True) for n in shapes)

    def run(q, k, v, table) -> torch.Tensor:
        bias = gf.RelativeBuckets(table, max_distance=5)
        mask = gf.Causal() & gf.Window(1)
        with gf.memory_budget(budget):
            return gf.attention(q, k, v, mask=mask, bias=bias, softcap=softcap, backend="streaming")

    assert torch.autograd.gradcheck(run, (q, k, v, table))


def test_streaming_skips_what_is_hidden() -> None:
    """Keys that no tile needs are never read: poison there does no harm."""
    q, k, v = operands(L=64, S=64)
    k[:, :, :16] = torch.nan
    v[:, :, :16] = torch.nan
    mask = gf.Window(left=3, right=3)
    with gf.memory_budget(B * H * 24 * 8 * 8):  # tiles of 8 × 8
        out = gf.attention(q, k, v, mask=mask, backend="streaming")
    assert out[:, :, :13].isnan().all(-1).any()
    assert not out[:, :, 24:].isnan().any()


# ── compiled ──


@pytest.mark.plain
@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Causal() & gf.Window(2)])
def test_attention_compiles_into_one_graph(mask: gf.Mask | None) -> None:
    q, k, v = operands(L=7, S=7, dtype=torch.float32)

    def run(q, k, v):
        return gf.attention(q, k, v, mask=mask)

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert_same(compiled(q, k, v), run(q, k, v))


@pytest.mark.plain
def test_softcap_compiles_too() -> None:
    q, k, v = operands(dtype=torch.float32)
    compiled = torch.compile(
        lambda q, k, v: gf.attention(q, k, v, softcap=2.0), fullgraph=True, backend="aot_eager"
    )
    assert_close(compiled(q, k, v), gf.attention(q, k, v, softcap=2.0), 1e-6)


@pytest.mark.plain
def test_decoding_with_a_tensor_offset_compiles_once() -> None:
    """A cache of fixed size: only the offset changes from step to step, and no graph is rebuilt."""
    q, k, v = operands(L=1, S=13, dtype=torch.float32)

    def step(q, k, v, offset):
        return gf.attention(q, k, v, mask=gf.Causal(offset=offset))

    graphs = []

    def counting(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(step, fullgraph=True, backend=counting)
    for place in (3, 4, 9):
        got = compiled(q, k, v, torch.tensor(place))
        seen = slice(0, place + 1)
        assert_close(got, gf.attention(q, k[:, :, seen], v[:, :, seen]), 1e-6)
    assert len(graphs) == 1


@pytest.mark.plain
@pytest.mark.skipif(not flex.has_avx2(), reason="FlexAttention has no kernels for this processor")
@pytest.mark.filterwarnings("ignore")
def test_flex_on_the_cpu() -> None:
    """Masks and biases compiled, over several blocks; another length and window change nothing."""
    shapes = [(150, 300, 50), (170, 290, 60)]
    for L, S, left in shapes:
        q, k, v = operands(L, S, dtype=torch.float32)
        mask = gf.Causal() & gf.Window(left) | gf.Prefix(9)
        slopes, buckets = gf.ALiBi.of_heads(H), gf.RelativeBuckets(torch.randn(16, H))
        for bias in (slopes, buckets, slopes + buckets):
            options = {"mask": mask, "bias": bias, "softcap": 5.0}
            got = gf.attention(q, k, v, **options, backend="flex")
            exact = reference.attention(*(t.double() for t in (q, k, v)), **options)
            assert_close(got, exact.float(), 1e-5)
        endless = {"mask": gf.Causal() & gf.Window(1 << 40), "backend": "flex"}
        assert_close(
            gf.attention(q, k, v, **endless), gf.attention(q, k, v, mask=gf.Causal()), 1e-5
        )
    q, k, v = operands(150, 300, dtype=torch.float32)
    empty = gf.Padding(torch.tensor([300, 0]))
    assert_zero(gf.attention(q, k, v, mask=empty, backend="flex")[1])
