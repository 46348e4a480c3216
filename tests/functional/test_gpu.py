"""The same promises on a CUDA device, where other kernels run."""

from typing import Any

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_zero
from glassformer.errors import BackendError
from glassformer.functional import reference
from glassformer.functional.masks import PackedRow

pytestmark = [pytest.mark.gpu, pytest.mark.plain, pytest.mark.filterwarnings("ignore")]

B, H, K, L, S, D = 2, 6, 3, 139, 163, 16
LOW = (torch.bfloat16, torch.float16)
HALF_AND_SINGLE = (*LOW, torch.float32)
BACKENDS = ("sdpa", "flex", "streaming")


def operands(
    L: int = L, S: int = S, K: int = K, E: int = D, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, ...]:
    shapes = ((B, H, L, D), (B, K, S, D), (B, K, S, E))
    return tuple(torch.randn(*n, device="cuda", dtype=dtype) for n in shapes)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
def test_rows_with_nothing_allowed(backend: str, dtype: torch.dtype) -> None:
    q, k, v = (t.requires_grad_() for t in operands(dtype=dtype))
    allowed = torch.rand(B, 1, L, S, device="cuda") > 0.5
    allowed[0, 0, 2] = allowed[1] = False
    out = gf.attention(q, k, v, mask=allowed, backend=backend)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), torch.randn_like(out))
    assert_zero(out[0, :, 2])
    assert_zero(out[1])
    assert_zero(dq[0, :, 2])
    for grad in (dq, dk, dv):
        assert_zero(grad[1])
        assert grad[0].isfinite().all()


@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
@pytest.mark.parametrize(("L", "S"), [(9, 9), (1, 9), (5, 300), (300, 5), (131, 300)])
@pytest.mark.parametrize("K", [6, 2])
def test_causal_is_bottom_right_in_the_fused_kernels(
    dtype: torch.dtype, L: int, S: int, K: int
) -> None:
    q, k, v = (t.requires_grad_() for t in operands(L, S, K, dtype=dtype))
    explanation = gf.explain(q, k, v, mask=gf.Causal())
    assert explanation.backend == "sdpa" and "dense" not in explanation.reason
    got = gf.attention(q, k, v, mask=gf.Causal())
    exact = reference.attention(*(t.double() for t in (q, k, v)), mask=gf.Causal())
    assert_close(got.double(), exact, 1e-5 if dtype == torch.float32 else 3e-2)
    back = torch.randn_like(got)
    for a, b in zip(
        torch.autograd.grad(got, (q, k, v), back),
        torch.autograd.grad(exact, (q, k, v), back.double()),
        strict=True,
    ):
        assert_close(a.double(), b.double(), 5e-5 if dtype == torch.float32 else 0.15)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
def test_scores_of_ten_thousand(backend: str, dtype: torch.dtype) -> None:
    q, k, v = operands(dtype=dtype)
    q, k = torch.zeros_like(q), torch.zeros_like(k)
    q[..., 0], k[:, :, 4, 0], k[:, :, 1, 0] = 100.0, 100.0, -100.0
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    out = gf.attention(q, k, v, scale=1.0, backend=backend)
    expected = v[:, :, 4].repeat_interleave(H // K, dim=1)[:, :, None].expand_as(out)
    assert_close(out, expected, 1e-5)  # float32 kernels split numbers into parts
    for grad in torch.autograd.grad(out.sum(), (q, k, v)):
        assert grad.isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision_with_large_negative_biases(backend: str) -> None:
    q, k, v = (t.requires_grad_() for t in operands(dtype=torch.float16))
    bias = torch.zeros(L, S, dtype=torch.float16, device="cuda")
    bias[1, 3:] = -30000.0
    bias[2] = torch.finfo(torch.float16).min
    out = gf.attention(q, k, v, bias=bias, backend=backend)
    exact = reference.attention(*(t.double() for t in (q, k, v)), bias=bias.double())
    rows = [0, 1, 3, 4]
    assert_close(out[:, :, rows].double(), exact[:, :, rows], 5e-3)
    assert out.isfinite().all()
    for grad in torch.autograd.grad(out.sum(), (q, k, v)):
        assert grad.isfinite().all()


@pytest.mark.parametrize("which", ["q", "k", "v"])
@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Window(left=200)])
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
@pytest.mark.parametrize("backend", BACKENDS)
def test_nan_is_never_hidden(
    which: str, mask: gf.Mask | None, dtype: torch.dtype, backend: str
) -> None:
    names = dict(zip("qkv", operands(163, 163, 6, dtype=dtype), strict=True))
    names[which][0, 1, 40, 3] = torch.nan
    out = gf.attention(**names, mask=mask, backend=backend)
    seen = slice(40, 41) if which == "q" else slice(40, None)
    column = slice(3, 4) if which == "v" else slice(None)
    assert out[0, 1, seen, column].isnan().all()


@pytest.mark.parametrize("dtype", (*HALF_AND_SINGLE, torch.float64))
@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Causal() & gf.Window(17)])
def test_statistics(dtype: torch.dtype, mask: gf.Mask | None) -> None:
    q, k, _ = operands(dtype=dtype)
    got = gf.attention_statistics(q, k, mask=mask, map_size=(10, 7), top=3)
    cpu = gf.attention_statistics(q.cpu().double(), k.cpu().double(), mask=mask, map_size=(10, 7))
    atol = 1e-10 if dtype == torch.float64 else 2e-4
    for name in ("lse", "entropy", "peak", "distance", "received"):
        unit = max(1.0, getattr(cpu, name).abs().max().item())
        assert_close(getattr(got, name).cpu().double() / unit, getattr(cpu, name) / unit, atol)
    assert_close(got.map.mass.cpu().double(), cpu.map.mass, atol * 20)


def test_large_windows_go_to_flex_and_lists_follow_the_device() -> None:
    q, k, v = operands(4096, 4096, dtype=torch.bfloat16)
    assert gf.explain(q, k, v, mask=gf.Causal() & gf.Window(99)).backend == "flex"
    assert gf.explain(q, k, v, mask=gf.Padding([9, 4096])).backend == "flex"
    q, k, v = operands(dtype=torch.bfloat16)
    assert gf.explain(q, k, v, mask=gf.Padding([9, 163])).backend == "sdpa"
    assert gf.attention(q, k, v, mask=gf.Padding([9, 163])).isfinite().all()
    with pytest.raises(BackendError, match="float32 at most"):
        gf.attention(*(t.double() for t in (q, k, v)), backend="flex")


@pytest.mark.parametrize(("n_tokens", "width"), [(139, 16), (256, 64), (300, 128)])
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
def test_learned_buckets_and_their_gradient(n_tokens: int, width: int, dtype: torch.dtype) -> None:
    """Wide heads, too, whose tiles fill the shared memory of a processor."""
    q, k, v, back = (
        torch.randn(B, H, n_tokens, width, device="cuda", dtype=dtype, requires_grad=learns)
        for learns in (True, True, True, False)
    )
    table = torch.randn(32, H, device="cuda", requires_grad=True)
    inputs = (q, k, v, table)
    bias = gf.RelativeBuckets(table)
    assert dtype == torch.float32 or gf.explain(q, k, v, bias=bias).backend == "flex"
    found = gf.attention(q, k, v, bias=bias, backend="flex")
    exact = reference.attention(*(t.double() for t in (q, k, v)), bias=bias)
    assert_close(found.double(), exact, 1e-4 if dtype == torch.float32 else 3e-2)
    got = torch.autograd.grad(found, inputs, back)
    right = torch.autograd.grad(exact, inputs, back.double())
    for a, b in zip(got, right, strict=True):
        unit = max(1.0, b.abs().max().item())
        assert_close(a.double() / unit, b.double() / unit, 1e-3 if dtype == torch.float32 else 3e-2)


@pytest.mark.parametrize("mask", [gf.Causal(), gf.Causal() & gf.Window(17)])
def test_attention_compiles_into_one_graph(mask: gf.Mask) -> None:
    q, k, v = operands(163, 163, dtype=torch.bfloat16)
    compiled = torch.compile(lambda q, k, v: gf.attention(q, k, v, mask=mask), fullgraph=True)
    assert_close(compiled(q, k, v), gf.attention(q, k, v, mask=mask), 2e-2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
@pytest.mark.parametrize("scale", [-0.7, 0.0])
@pytest.mark.parametrize("lengths", [(163, 163), (139, 163), (163, 139), (1, 163)])
def test_a_scale_need_not_be_positive(
    backend: str, dtype: torch.dtype, scale: float, lengths: tuple[int, int]
) -> None:
    q, k, v = (t.requires_grad_() for t in operands(*lengths, dtype=dtype))
    for mask in (None, gf.Causal(), gf.Window(left=9)):
        out = gf.attention(q, k, v, mask=mask, scale=scale, backend=backend)
        exact = reference.attention(*(t.double() for t in (q, k, v)), mask=mask, scale=scale)
        assert_close(out.double(), exact, 1e-5 if dtype == torch.float32 else 3e-2)
        for grad in torch.autograd.grad(out.sum(), (q, k, v)):
            assert grad.isfinite().all()


@pytest.mark.parametrize("which", ["q", "k"])
@pytest.mark.parametrize("mask", [None, gf.Causal()])
@pytest.mark.parametrize("dtype", HALF_AND_SINGLE)
@pytest.mark.parametrize("backend", ("sdpa", "streaming"))
@pytest.mark.parametrize("S", [1, 3, 15])
def test_nan_is_never_hidden_among_few_keys(
    which: str, mask: gf.Mask | None, dtype: torch.dtype, backend: str, S: int
) -> None:
    names = dict(zip("qkv", operands(S, S, 6, dtype=dtype), strict=True))
    names[which][0, 1] = torch.nan
    out = gf.attention(**names, mask=mask, backend=backend)
    assert out[0, 1].isnan().all()


@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Causal(offset=200), gf.Causal(offset=7)])
def test_offsets_that_hide_nothing(mask: gf.Mask | None) -> None:
    q, k, v = operands()
    exact = reference.attention(*(t.double() for t in (q, k, v)), mask=mask)
    for backend in BACKENDS:
        assert_close(gf.attention(q, k, v, mask=mask, backend=backend).double(), exact, 1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("low", LOW)
def test_autocast_gives_its_dtype(backend: str, low: torch.dtype) -> None:
    q, k, v = (t.requires_grad_() for t in operands())
    with torch.autocast("cuda", dtype=low):
        out = gf.attention(q, k.to(low), v, mask=gf.Causal(), backend=backend)
        grads = torch.autograd.grad(out.float().sum(), (q, k, v))
    assert out.dtype == low
    plain = gf.attention(*(t.to(low) for t in (q, k, v)), mask=gf.Causal(), backend=backend)
    assert_close(out, plain, 1e-6)
    assert all(g.dtype == torch.float32 and g.isfinite().all() for g in grads)


def test_streaming_can_be_differentiated_twice() -> None:
    q, k, v = (t[:1, :, :20].double().requires_grad_() for t in operands())

    def penalty(backend: str) -> tuple[torch.Tensor, ...]:
        out = gf.attention(q, k, v, mask=gf.Causal(), softcap=2.0, backend=backend)
        first = torch.autograd.grad(out.square().sum(), (q, k, v), create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), (q, k, v))

    for got, right in zip(penalty("streaming"), penalty("reference"), strict=True):
        assert_close(got, right, 1e-9)


@pytest.mark.parametrize("backend", ("sdpa", "flex"))
def test_kernels_without_second_derivatives_say_so(backend: str) -> None:
    q, k, v = (t.requires_grad_() for t in operands(dtype=torch.bfloat16))
    out = gf.attention(q, k, v, mask=gf.Causal() & gf.Window(17), backend=backend)
    with pytest.raises((RuntimeError, NotImplementedError)):
        first = torch.autograd.grad(out.square().sum(), (q, k, v), create_graph=True)
        torch.autograd.grad(first[0].square().sum(), q)


@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Causal() & gf.Window(17)])
def test_forward_mode_and_dynamic_graphs(mask: gf.Mask | None) -> None:
    q, k, v = operands(163, 163, K=6)
    _, got = torch.func.jvp(lambda q: gf.attention(q, k, v, mask=mask), (q,), (q.cos(),))
    _, right = torch.func.jvp(lambda q: reference.attention(q, k, v, mask=mask), (q,), (q.cos(),))
    assert_close(got, right, 1e-4)
    compiled = torch.compile(
        lambda q, k, v: gf.attention(q, k, v, mask=mask),
        dynamic=True,
        fullgraph=True,
        backend="aot_eager",
    )
    for n in (163, 41):
        cut = [t[:, :, :n] for t in (q, k, v)]
        assert_close(compiled(*cut), gf.attention(*cut, mask=mask), 1e-4)


@pytest.mark.parametrize("kind", ["own", "causal", "cross", "grouped", "odd width"])
def test_packed_texts(kind: str) -> None:
    """In half precision packed texts have a kernel of their own; widths it lacks are padded."""
    own, D = [3, 70, 1, 129], 44 if kind == "odd width" else 64
    asking = [9, 2, 80, 1] if kind == "cross" else own
    rows = [PackedRow.of(n) for n in ([own, asking] if kind == "cross" else [own])]
    masks: list[gf.Mask] = [
        gf.Sequences.between(*(PackedRow(*(x.to(device) for x in row)) for row in rows))
        for device in ("cuda", "cpu")
    ]
    if kind == "causal":
        masks = [gf.Causal() & mask for mask in masks]
    shapes = [(1, 6, sum(asking), D), *[(1, 3 if kind == "grouped" else 6, sum(own), D)] * 2]
    exact = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    half = [x.detach().to("cuda", torch.bfloat16).requires_grad_() for x in exact]
    out = gf.attention(*half, mask=masks[0])
    expected = reference.attention(*exact, mask=masks[1])
    towards = torch.randn_like(expected)
    found = [out, *torch.autograd.grad(out, half, towards.to(out))]
    for a, b in zip(found, [expected, *torch.autograd.grad(expected, exact, towards)], strict=True):
        assert float((a.cpu().double() - b).norm() / b.norm()) < 2e-2


def test_packed_texts_compiled() -> None:
    """One compiled program for batches of other lengths."""

    def attend(q: torch.Tensor, row: PackedRow) -> torch.Tensor:
        return gf.attention(q, q, q, mask=gf.Causal() & gf.Sequences.between(row))

    compiled = torch.compile(attend, dynamic=True)
    for own in ([3, 70, 1], [30, 2, 90, 16]):
        row = PackedRow(*(x.cuda() for x in PackedRow.of(own)))
        q = torch.randn(1, 6, sum(own), 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        out, expected = compiled(q, row), attend(q, row)
        assert_close(out, expected, atol=1e-2)
        towards = torch.randn_like(out)
        pair = (torch.autograd.grad(x, q, towards)[0] for x in (out, expected))
        assert_close(*pair, atol=2e-2)


NEEDING_FLEX: list[dict[str, object]] = [
    {"mask": gf.Causal() & gf.Documents(torch.arange(163) // 50)},
    {"mask": gf.Causal(offset=0) & gf.Padding(torch.tensor([163, 70]))},
    {"mask": gf.Causal() & gf.Window(17), "softcap": 5.0},
    {"bias": gf.ALiBi.of_heads(H)},
]


@pytest.mark.parametrize("options", NEEDING_FLEX)
def test_flex_does_not_wait_for_the_gpu(options: dict[str, Any]) -> None:
    """Otherwise nothing could be launched while the layers before are being computed."""
    given = {name: x if name == "softcap" else x.to("cuda") for name, x in options.items()}
    q, k, v = operands(163, 163, dtype=torch.bfloat16)
    with torch.inference_mode():
        expected = gf.attention(q, k, v, **given, backend="flex")
    gf.attention(q, k, v, **given, backend="flex")  # compiled again, outside of that mode
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = gf.attention(q, k, v, **given, backend="flex")
    finally:
        torch.cuda.set_sync_debug_mode(before)
    assert torch.equal(found, expected)
    q.requires_grad_()  # what was made in inference mode serves training, too
    gf.attention(q, k, v, **given, backend="flex").sum().backward()
    assert q.grad is not None and q.grad.isfinite().all()
