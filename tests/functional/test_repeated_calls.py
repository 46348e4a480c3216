"""A repeated call gives the same to the bit, and a wrong one the sentence of a first call."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.forward_ad import dual_level
from torch.func import grad, jvp, vmap
from torch.utils.flop_counter import FlopCounterMode

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import ConfigError, DtypeError, ShapeError
from glassformer.functional import repeated_calls
from glassformer.functional.backends import native_timing
from glassformer.functional.backends.native import find_kernel


@pytest.fixture(autouse=True)
def forget():
    repeated_calls._known.clear()
    repeated_calls._latest.clear()
    yield
    repeated_calls._known.clear()
    repeated_calls._latest.clear()


def make_operands(head_dim: int = 24, n_kv_heads: int = 6, dtype: torch.dtype = torch.float32):
    torch.manual_seed(0)
    shapes = (2, 6, 19, head_dim), *[(2, n_kv_heads, 19, head_dim)] * 2
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("n_kv_heads", [6, 3])
@pytest.mark.parametrize("head_dim", [8, 48, 64, 112])
@pytest.mark.parametrize("mask", [None, gf.Causal()], ids=["none", "causal"])
def test_the_second_call_is_the_first(mask, head_dim: int, n_kv_heads: int, dtype) -> None:
    q, k, v = make_operands(head_dim, n_kv_heads, dtype)
    for scale in (None, 0.3):
        first, second, third = (gf.attention(q, k, v, mask=mask, scale=scale) for _ in range(3))
        assert_same(first, second)
        assert_same(first, third)
    assert len(repeated_calls._known) == (0 if dtype == torch.bfloat16 else 2)


def test_the_latest_call_is_recalled_only_for_its_like() -> None:
    q, k, v = make_operands()
    for _ in range(2):
        gf.attention(q, k, v)

    def recalls(*operands, mask=None, scale=None, dropout=0.0) -> bool:
        return repeated_calls.recall_latest(*operands, mask, scale, dropout) is not None

    assert recalls(q, k, v)
    assert recalls(q.transpose(1, 2).contiguous().transpose(1, 2), k, v)
    with torch.no_grad():
        assert recalls(q, k, v)
    unlike = {
        "longer": (torch.randn(2, 6, 20, 24), k, v),
        "wider values": (q, k, torch.randn(2, 6, 19, 25)),
        "another dtype": (q.double(), k, v),
        "another place": (q, k, v.to("meta")),
        "learns": (q, k, v.clone().requires_grad_()),
        "of another class": (torch.nn.Parameter(q, requires_grad=False), k, v),
    }
    for name, operands in unlike.items():
        assert not recalls(*operands), name
    assert not recalls(q, k, v, mask=gf.Causal())
    assert not recalls(q, k, v, scale=0.3)
    assert not recalls(q, k, v, dropout=0.1)
    with torch.autocast("cpu", torch.bfloat16):
        assert not recalls(q, k, v)
    with dual_level():
        assert not recalls(q, k, v)
    within = []
    vmap(lambda x: within.append(recalls(x, k, v)) or x)(q[None])
    assert within == [False]
    for _ in range(2):
        gf.attention(q, k, v, mask=gf.Causal())
    assert recalls(q, k, v, mask=gf.Causal())
    assert not recalls(q, k, v, mask=gf.Causal(offset=2))


def test_without_pytorchs_comparison_calls_are_still_remembered(monkeypatch) -> None:
    monkeypatch.setattr(repeated_calls, "guards", None)
    q, k, v = make_operands()
    outs = [gf.attention(q, k, v) for _ in range(3)]
    assert_same(outs[0], outs[2])
    assert repeated_calls._known
    assert repeated_calls.recall_latest(q, k, v, None, None, 0.0) is None


@pytest.mark.parametrize("scale", [-0.2, 0.0])
def test_what_flags_cannot_say_is_not_remembered(scale: float) -> None:
    q, k, v = make_operands()
    options = (
        {"scale": scale},
        {"mask": gf.Window(3)},
        {"mask": gf.Causal(offset=2)},
        {"bias": torch.zeros(19, 19)},
        {"softcap": 3.0},
    )
    for each in options:
        gf.attention(q, k, v, **each)
    gf.attention(q, k, v[..., :5])
    many = torch.randn(2, 6, 300, 24)
    gf.attention(many, k[:, :, :7], v[:, :, :7])  # its mask would be kept
    assert not repeated_calls._known


@pytest.mark.parametrize("n_kv_heads", [6, 3])
@pytest.mark.parametrize(("L", "S"), [(1, 1), (1, 8), (6, 6), (3, 7), (9, 5), (15, 15)])
@pytest.mark.parametrize("mask", [None, gf.Causal()], ids=["none", "causal"])
def test_few_keys_are_remembered_and_nan_stays_visible(mask, L: int, S: int, n_kv_heads: int):
    q, k, v = make_operands(n_kv_heads=n_kv_heads)
    q, k, v = q[:, :, :L], k[:, :, :S], v[:, :, :S]
    with torch.inference_mode():
        first = gf.attention(q, k, v, mask=mask)
    assert len(repeated_calls._known) == 1
    for _ in range(2):
        assert_same(gf.attention(q, k, v, mask=mask), first)
    assert_close(first, gf.attention(q, k, v, mask=mask, backend="reference"), 1e-6)
    q, k = q.clone(), k.clone()
    for operands in (
        (q.index_fill(2, torch.tensor(L - 1), torch.nan), k, v),
        (q, k * torch.nan, v),
    ):
        for backend in (None, "sdpa"):
            out = gf.attention(*operands, mask=mask, backend=backend)
            assert out[:, :, -1].isnan().all()
    operands = [x.clone().requires_grad_() for x in (q, k, v)]
    for _ in range(3):
        grads = torch.autograd.grad(gf.attention(*operands, mask=mask).sum(), operands)
    right = gf.attention(*operands, mask=mask, backend="reference").sum()
    for got, expected in zip(grads, torch.autograd.grad(right, operands), strict=True):
        assert_close(got, expected, 1e-5)


def test_a_long_call_is_remembered_where_the_kernel_in_c_was_slower(monkeypatch) -> None:
    """As tests/conftest.py has it: without a mask."""
    if find_kernel() is None:
        pytest.skip("needs a C compiler, and NEON or AVX2")
    q, k, v = (torch.randn(1, 8, 256, 64) for _ in range(3))
    assert gf.explain(q, k, v).backend == "sdpa"
    first = gf.attention(q, k, v)
    assert len(repeated_calls._known) == 1
    for _ in range(2):
        assert_same(gf.attention(q, k, v), first)
    assert repeated_calls.recall_latest(q, k, v, None, None, 0.0) is not None
    gf.attention(q, k, v, mask=gf.Causal())  # which native has
    learning = q.clone().requires_grad_()
    gf.attention(learning, k, v)  # whether gradients follow is another question each time
    with torch.no_grad():
        gf.attention(learning, k, v)
    assert len(repeated_calls._known) == 1
    repeated_calls._known.clear()
    repeated_calls._latest.clear()
    with FlopCounterMode(display=False):  # who records operations keeps native from the call
        gf.attention(q, k, v)
    monkeypatch.setattr(native_timing, "measure", lambda case: 0.5)
    gf.attention(q, k, v)
    assert not repeated_calls._known


def test_no_mask_is_kept_that_was_made_in_a_mode() -> None:
    q, k, v = (x[:, :, :7] for x in make_operands())
    with FakeTensorMode(allow_non_fake_inputs=True):
        gf.attention(q, k, v)
    assert not repeated_calls._known
    assert type(gf.attention(q, k, v)) is torch.Tensor


def test_gradients_of_a_repeated_call() -> None:
    def gradients() -> tuple:
        operands = [x.clone().requires_grad_() for x in make_operands()]
        out = gf.attention(*operands, mask=gf.Causal())
        return torch.autograd.grad(out.square().sum(), operands)

    for a, b in zip(gradients(), gradients(), strict=True):
        assert_same(a, b)


@pytest.mark.plain
def test_errors_after_a_good_call() -> None:
    q, k, v = make_operands()
    gf.attention(q, k, v)
    with pytest.raises(DtypeError, match=r"got q torch\.float32 and k torch\.float64"):
        gf.attention(q, k.double(), v)
    with pytest.raises(DtypeError, match="q and v must have the same dtype"):
        gf.attention(q, k, v.double())
    with pytest.raises(DtypeError, match="got q on cpu and k on meta"):
        gf.attention(q, k.to("meta"), v)
    with pytest.raises(ShapeError, match="same n_kv_heads and length"):
        gf.attention(q, k, v[:, :, :18])
    with pytest.raises(ConfigError, match=r"dropout must be .* got 1.5"):
        gf.attention(q, k, v, dropout=1.5)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # PyTorch's own, in jvp
def test_transforms_and_autocast_are_not_mistaken_for_it() -> None:
    q, k, v = make_operands()
    plain = gf.attention(q, k, v)
    slope = grad(lambda x: gf.attention(x, k, v).square().sum())(q)
    own = q.clone().requires_grad_()
    gf.attention(own, k, v).square().sum().backward()
    assert_close(slope, own.grad, 1e-6)
    _, forward = jvp(lambda x: gf.attention(x, k, v), (q,), (torch.ones_like(q),))
    assert forward.shape == plain.shape
    with torch.autocast("cpu", torch.bfloat16):
        assert gf.attention(q, k, v).dtype == torch.bfloat16
    assert gf.attention(q, k, v).dtype == torch.float32
    with torch.device("meta"):
        assert gf.attention(*(x.to("meta") for x in (q, k, v))).is_meta


def test_it_forgets_before_it_grows(monkeypatch) -> None:
    monkeypatch.setattr(repeated_calls, "MOST", 3)
    for length in range(16, 24):
        q = torch.randn(1, 1, length, 4)
        gf.attention(q, q, q)
        assert 1 <= len(repeated_calls._known) <= 3
