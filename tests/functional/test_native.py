"""The kernel in C for attention on a CPU: right, and chosen only where it may be."""

import math
import re

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer import compilation
from glassformer.errors import BackendError
from glassformer.functional import reference, repeated_calls
from glassformer.functional.backends import native, native_timing
from native_calls import CAUSAL, check_against_definition, make_operands, run

LENGTHS = (1, 2, 15, 16, 17, 63, 64, 65, 200, 256, 1000)

pytestmark = pytest.mark.skipif(native.find_kernel() is None, reason="needs a C compiler")


@pytest.mark.parametrize("L", LENGTHS)
def test_lengths_around_the_blocks(L: int) -> None:
    check_against_definition(make_operands(L))


@pytest.mark.parametrize("D", [16, 32, 48, 80, 112, 128, 256])
def test_widths_of_heads(D: int) -> None:
    check_against_definition(make_operands(131, D))


@pytest.mark.parametrize(("H", "K"), [(6, 2), (5, 1)])
def test_grouped_heads(H: int, K: int) -> None:
    check_against_definition(make_operands(83, 32, H=H, K=K))


@pytest.mark.parametrize("scale", [-0.7, -0.0, 0.0, 1e-30, 3.0])
def test_any_scale(scale: float) -> None:
    check_against_definition(make_operands(70, 16), scale=scale)


def test_a_window_as_wide_as_the_text_is_causal() -> None:
    q, k, v = make_operands(40, 32)
    wide = gf.attention(q, k, v, mask=CAUSAL & gf.Window(40), backend="native")
    assert_same(wide, gf.attention(q, k, v, mask=CAUSAL, backend="native"))


def test_operands_and_gradients_may_lie_anywhere() -> None:
    views = make_operands(67, 32)
    layouts = {
        "straight": lambda x: x.contiguous(),
        "columns first": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
        "every other row": lambda x: x.repeat_interleave(2, dim=2)[:, :, ::2],
        "one number too far": lambda x: torch.cat([x[..., :1], x], dim=-1)[..., 1:],
    }
    back = torch.randn(views[0].shape)
    expected = run(views, back)
    for name, layout in layouts.items():
        operands = tuple(layout(x.detach()).requires_grad_() for x in views)
        for got, right in zip(run(operands, layout(back)), expected, strict=True):
            assert torch.equal(got, right), name
    spread = torch.ones(()).expand(back.shape)  # as of out.sum()
    for got, right in zip(run(views, spread), run(views, torch.ones_like(back)), strict=True):
        assert_same(got, right)


def test_one_sequence_for_all_and_shared_operands() -> None:
    """Strides of zero, and gradients that add up where q is k is v."""
    q, k, v = make_operands(70, 16)
    shared = k[:1].detach().expand(2, -1, -1, -1)
    assert_same(
        gf.attention(q, shared, v, mask=CAUSAL, backend="native"),
        gf.attention(q, shared.contiguous(), v, mask=CAUSAL, backend="native"),
    )
    gf.attention(q, q, q, mask=CAUSAL, backend="native").sum().backward()
    wide = q.detach().double().requires_grad_()
    reference.attention(wide, wide, wide, mask=CAUSAL).sum().backward()
    assert_close(q.grad.double(), wide.grad, 1e-5)


def test_the_number_of_threads_changes_nothing() -> None:
    operands = make_operands(300, 48, B=1, H=5)
    back = torch.randn(operands[0].shape)
    expected, before = run(operands, back), torch.get_num_threads()
    try:
        for n in (1, 2, 3, 7):
            torch.set_num_threads(n)
            for got, right in zip(run(operands, back), expected, strict=True):
                assert_same(got, right)
    finally:
        torch.set_num_threads(before)


def test_the_future_changes_no_bit_of_the_past() -> None:
    operands, at = make_operands(150, 16), 70
    out = gf.attention(*operands, mask=CAUSAL, backend="native")
    changed = [x.detach().clone() for x in operands]
    for x in changed:
        x[:, :, at:] *= -3
    after = gf.attention(*changed, mask=CAUSAL, backend="native")
    assert_same(after[:, :, :at], out[:, :, :at])
    assert not torch.equal(after[:, :, at:], out[:, :, at:])
    ahead = torch.autograd.grad(out[:, :, :at].square().sum(), operands)
    for grad in ahead:
        assert not grad[:, :, at:].any()
        assert grad[:, :, :at].any()


# ── hard values ──


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [0, 30, 64, 99])
def test_what_is_no_number_reaches_all_who_may_attend_to_it(
    which: int, value: float, at: int
) -> None:
    """And nobody before the group of 16 that it lies in; PyTorch's kernel does the same."""
    operands = make_operands(100, 16)
    with torch.no_grad():
        operands[which][0, 1, at, 3] = value
    back = torch.randn(operands[0].shape)
    got, theirs = run(operands, back), run(operands, back, "sdpa")
    exact = reference.attention(*(x.detach().double() for x in operands), mask=CAUSAL)
    seen = torch.arange(100) >= at if which else torch.arange(100) == at
    lost = exact[0, 1, seen].isnan()
    assert got[0][0, 1, seen][lost].isnan().all()
    assert lost.any() or not math.isnan(value)
    clean = got[0].isfinite()
    assert clean[1].all() and clean[0, [0, 2]].all() and clean[0, 1, : at // 16 * 16].all()
    assert_close(got[0][clean & exact.isfinite()].double(), exact[clean & exact.isfinite()], 1e-5)
    for ours, other in zip(got[1:], theirs[1:], strict=True):
        assert ours[1].isfinite().all()
        if math.isnan(value):
            assert ours[0, 1, at].isnan().any() == other[0, 1, at].isnan().any()


def test_scores_of_a_hundred_thousand() -> None:
    """One key takes all; gradients err no more than those of PyTorch's kernel."""
    operands = make_operands(90, 16)
    with torch.no_grad():
        for x in operands[:2]:
            x.mul_(300)
    back = torch.randn(operands[0].shape)
    exact = run(
        tuple(x.detach().double().requires_grad_() for x in operands), back.double(), "sdpa"
    )
    for got, theirs, right in zip(
        run(operands, back), run(operands, back, "sdpa"), exact, strict=True
    ):
        limit = 2 * (theirs - right).abs().max().item() + 1e-5
        assert_close(got.double(), right, limit)


def test_a_row_of_nothing_but_minus_infinity_is_zero() -> None:
    q, k, v = make_operands(70, 16)
    with torch.no_grad():
        q[..., 0], k[..., 0] = 3e38, -3e38
    got = gf.attention(q, k, v, mask=CAUSAL, backend="native")
    assert_same(got, torch.zeros_like(got))


# ── derivatives ──


@pytest.mark.parametrize("K", [3, 1])
def test_second_derivatives(K: int) -> None:
    operands = make_operands(70, 16, B=1, K=K)

    def penalty(backend: str) -> list[Tensor]:
        out = gf.attention(*operands, mask=CAUSAL, backend=backend)
        first = torch.autograd.grad(out.square().sum(), operands, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), operands)
        return [*first, *second]

    for got, right in zip(penalty("native"), penalty("reference"), strict=True):
        assert_close(got, right, 1e-5 * right.abs().max().item())


def test_a_batch_of_gradients_at_once() -> None:
    """What torch.autograd.functional.jacobian(vectorize=True) does: a vmap over backward."""
    operands = make_operands(20, 16, B=1, H=4, K=2)
    backs = torch.randn(3, *operands[0].shape)
    out = gf.attention(*operands, mask=CAUSAL, backend="native")
    got = torch.autograd.grad(out, operands, backs, is_grads_batched=True)
    for i, back in enumerate(backs):
        for batched, single in zip(got, run(operands, back)[1:], strict=True):
            assert_close(batched[i], single, 1e-5)


def test_autocast_of_the_surroundings_does_not_reach_it() -> None:
    operands = make_operands(40, 16)
    out = gf.attention(*operands, mask=CAUSAL, backend="native")
    with torch.autocast("cpu", torch.bfloat16):
        inside = torch.autograd.grad(out.sum(), operands, retain_graph=True)
    for got, right in zip(inside, torch.autograd.grad(out.sum(), operands), strict=True):
        assert_same(got, right)


# ── when it is chosen ──


@pytest.fixture
def always_worthwhile(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native_timing, "ENOUGH", 0)
    repeated_calls._known.clear()
    yield
    repeated_calls._known.clear()


def test_chosen_where_there_is_enough_work_for_it() -> None:
    operands = make_operands(256, B=4, H=4)
    for options in ({}, {"mask": CAUSAL & gf.Window(9)}, {"bias": gf.ALiBi.of_heads(4)}):
        explanation = gf.explain(*operands, **{"mask": CAUSAL, **options})
        assert explanation.backend == "native"
        assert re.search(r"takes 0\.\d\d of the time of PyTorch's", explanation.reason)
    few = tuple(x[:1, :, :128] for x in operands)
    for each, options in (
        (few, {}),
        (operands, {"mask": None}),  # not faster: see RATIOS
        (operands, {"dropout": 0.1}),
        (tuple(x.double() for x in operands), {}),
        (tuple(x.bfloat16() for x in operands), {}),
        ((operands[0][:, :, -1:], *operands[1:]), {"mask": gf.Padding([256, 9, 80, 3])}),
    ):
        assert gf.explain(*each, **{"mask": CAUSAL, **options}).backend == "sdpa"
    with torch.no_grad():
        assert gf.explain(*operands, mask=CAUSAL).backend == "native"


@pytest.mark.parametrize("L", [1, 5, 40])
def test_chosen_for_any_text_with_soft_capping(L: int) -> None:
    operands = make_operands(L, 16)
    explanation = gf.explain(*operands, mask=CAUSAL, softcap=5.0)
    assert explanation.backend == "native"
    assert "scaled_dot_product_attention has no soft-capping" in explanation.reason
    assert gf.explain(*operands, mask=gf.Prefix(L), softcap=5.0).backend == "native"
    mixed = gf.Prefix(L) | gf.Window(3)
    assert gf.explain(*operands, mask=mixed, softcap=5.0).backend == "streaming"


def test_not_chosen_on_processors_where_it_is_slower(monkeypatch) -> None:
    operands = make_operands(256, B=4, H=4)
    for ratio, expected in ((0.96, "sdpa"), (0.94, "native")):
        monkeypatch.setattr(native_timing, "measure", lambda _, ratio=ratio: ratio)
        for options in ({"mask": CAUSAL}, {}, {"mask": gf.Padding([256, 5, 0, 99])}):
            assert gf.explain(*operands, **options).backend == expected
            repeated_calls._known.clear()
    assert gf.attention(*operands, mask=CAUSAL, backend="native").shape == operands[0].shape


def test_without_gradients_it_is_the_same_and_keeps_nothing(always_worthwhile: None) -> None:
    q, k, v = make_operands(40, 16)
    with torch.no_grad():
        for _ in range(2):
            plain = gf.attention(q, k, v, mask=CAUSAL)
    for _ in range(2):
        out = gf.attention(q, k, v, mask=CAUSAL)
        assert out.grad_fn.name() == "_NativeBackward"
        assert_same(out, plain)
    with torch.inference_mode():
        assert_same(gf.attention(q.clone(), k, v, mask=CAUSAL), plain)
    assert gf.attention(q.detach(), k.detach(), v.detach(), mask=CAUSAL).grad_fn is None
    out = gf.attention(q.detach(), k, v.detach(), mask=CAUSAL)  # keys alone learn
    assert out.grad_fn.name() == "_NativeBackward"
    out.sum().backward()
    assert k.grad is not None and q.grad is None


REFUSED = (
    ("double", {}, "computes float32 on a CPU"),
    ("to_meta", {}, "computes float32 on a CPU"),
    (None, {"mask": CAUSAL | gf.Window(3)}, "knows Causal, Window, Padding, Prefix, one Doc"),
    (None, {"mask": (CAUSAL | gf.Prefix(3)) & gf.Window(9, 1)}, r"one Causal \| Prefix, alone or"),
    (None, {"mask": (CAUSAL | gf.Prefix(3)) & CAUSAL}, r"one Causal \| Prefix, alone or"),
    (
        None,
        {"mask": (CAUSAL | gf.Prefix(3)) & (CAUSAL | gf.Prefix(2))},
        r"and one Causal \| Prefix",
    ),
    (None, {"mask": CAUSAL & ~gf.Documents([0] * 40)}, "alone or combined by &"),
    (None, {"mask": gf.Documents([0] * 40) & gf.Documents([1] * 40)}, "one Documents and one"),
    (None, {"dropout": 0.1}, "knows no dropout"),
    (None, {"bias": torch.zeros(40, 40)}, "biases that depend on the distance alone"),
    (None, {"bias": gf.ALiBi(torch.ones(3), offset=1)}, "biases that depend on the distance alone"),
    (
        None,
        {"bias": gf.RelativeBuckets(torch.ones(8, 3).double())},
        "knows float32 biases that depend on",
    ),
    (None, {"bias": gf.ALiBi(torch.nn.Parameter(torch.ones(3)))}, "has no gradient for a bias"),
    (None, {"bias": gf.ALiBi(torch.ones(3)), "softcap": 2.0}, "has no soft-capping beside a bias"),
    ("narrow", {}, r"a multiple of 16 up to 256; got 8 and 8"),
    ("values", {}, r"a multiple of 16 up to 256; got 16 and 8"),
)


@pytest.mark.parametrize(("change", "options", "sentence"), REFUSED)
def test_what_it_refuses(change: str | None, options: dict, sentence: str) -> None:
    q, k, v = make_operands(40, 16)
    changes = {
        None: lambda: (q, k, v),
        "double": lambda: (q.double(), k.double(), v.double()),
        "to_meta": lambda: (q.to("meta"), k.to("meta"), v.to("meta")),
        "narrow": lambda: (q[..., :8], k[..., :8], v[..., :8]),
        "values": lambda: (q, k, v[..., :8]),
    }
    with pytest.raises(BackendError, match=sentence):
        gf.attention(*changes[change](), **{"mask": CAUSAL, **options}, backend="native")


class Recorder(TorchDispatchMode):
    """What FLOP counters and tracers are: they see PyTorch's operations, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_not_where_somebody_records_operations(always_worthwhile: None) -> None:
    operands = make_operands(40, 16)
    with Recorder() as recorder:
        assert gf.explain(*operands, mask=CAUSAL).backend == "sdpa"
        gf.attention(*operands, mask=CAUSAL)
    assert any("scaled_dot_product" in name for name in recorder.names)
    assert gf.attention(*operands, mask=CAUSAL).grad_fn.name() == "_NativeBackward"  # not for good
    mine = [torch.nn.Buffer(x.detach()) for x in operands]  # not a subclass; a parameter is one
    assert gf.explain(*operands[:2], mine[2], mask=CAUSAL).backend == "native"
    own = operands[0].as_subclass(type("Own", (Tensor,), {}))
    assert gf.explain(own, *operands[1:], mask=CAUSAL).backend == "sdpa"


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore")
def test_not_inside_graphs_and_transforms(always_worthwhile: None) -> None:
    operands = make_operands(40, 16)

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return gf.attention(q, k, v, mask=CAUSAL).sin().sum()

    expected = torch.autograd.grad(loss(*operands), operands)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    by_graph = torch.autograd.grad(compiled(*operands), operands)
    by_function = torch.func.grad(loss, argnums=(0, 1, 2))(*operands)
    traced = torch.jit.trace(loss, operands)
    longer = make_operands(50, 16)
    assert_close(traced(*longer), loss(*longer), 1e-3)
    for got in (by_graph, by_function):
        for one, right in zip(got, expected, strict=True):
            assert_close(one, right, 1e-5)
    _, slope = torch.func.jvp(loss, operands, operands)
    along = sum((g * x).sum() for g, x in zip(expected, operands, strict=True))
    assert_close(slope, along, 1e-3)


def test_without_a_compiler_all_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation.shutil, "which", lambda _: None)
    native.find_kernel.cache_clear()
    try:
        operands = make_operands(256, B=4, H=4)
        assert gf.explain(*operands, mask=CAUSAL).backend == "sdpa"
        with pytest.raises(BackendError, match=r"there is no C compiler.*backend='sdpa'"):
            gf.attention(*operands, mask=CAUSAL, backend="native")
    finally:
        native.find_kernel.cache_clear()


def test_long_texts_need_little_more_memory() -> None:
    """Room for one block per thread; the matrix would take 64 MiB."""
    operands = make_operands(4096, 16, B=1, H=1)
    check_against_definition(operands)
