"""NaN, infinities and scales that are not positive, where fused kernels take short cuts."""

import math

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.functional import reference

H, D = 2, 8
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
BACKENDS = ("sdpa", "streaming", "reference", None)
KEYS = (1, 2, 3, 7, 9, 15, 16, 17, 33)  # around the registers of every machine


def operands(L: int, S: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(1, H, n, D).to(dtype) for n in (L, S, S))


def masks(L: int, S: int) -> list[gf.Mask | None]:
    last = torch.zeros(L, S, dtype=torch.bool)
    last[:, -1] = True  # all that is seen lies in the part of a row that fills no register
    scattered = torch.rand(L, S) > 0.5
    return [None, gf.Causal(), gf.Window(left=1), gf.Explicit(last), gf.Explicit(scattered)]


POISON = {
    "a query of NaN": lambda q, k, v: q[0, 1, -1].fill_(math.nan),
    "a key of NaN": lambda q, k, v: k[0, 1, -1, 3].fill_(math.nan),
    "keys of NaN": lambda q, k, v: k[0, 1].fill_(math.nan),
    "a value of NaN": lambda q, k, v: v[0, 1, -1, 3].fill_(math.nan),
    "infinite times zero": lambda q, k, v: (q[..., 1].fill_(math.inf), k[..., 1].fill_(0.0)),
    "an infinite value": lambda q, k, v: v[0, 1, -1, 3].fill_(math.inf),
    "an infinite query": lambda q, k, v: q[0, 1, -1, 2].fill_(math.inf),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("poison", POISON)
def test_whoever_may_attend_to_nan_gets_nan(
    backend: str | None, dtype: torch.dtype, poison: str
) -> None:
    for S in KEYS if backend in ("sdpa", None) else KEYS[1:4]:
        for L in sorted({1, S}):
            q, k, v = operands(L, S, dtype)
            POISON[poison](q, k, v)
            for mask in masks(L, S):
                _check_poisoned(q, k, v, mask, backend)


def _check_poisoned(q, k, v, mask, backend) -> None:
    L, S = q.shape[2], k.shape[2]
    out = gf.attention(q, k, v, mask=mask, backend=backend)
    allowed = torch.ones(L, S, dtype=torch.bool) if mask is None else mask.dense(L, S)[0, 0]
    exact = reference.attention(*(x.double() for x in (q, k, v)), mask=mask)
    scores = (q.double() * D**-0.5) @ k.double().transpose(-1, -2)  # 1 H L S
    asked = (scores.isnan() & allowed).any(-1)[..., None].expand_as(out)
    read = (v.isnan()[:, :, None] & allowed[..., None]).any(-2)  # 1 H L D
    case = f"{L} × {S}, {mask!r}"
    assert out[asked | read].isnan().all(), case
    clean = exact.isfinite() & out.isfinite()  # NaN may spread to who may not attend to it
    assert_close(out[clean].double(), exact[clean], _tolerance(q.dtype), case)
    if q[0, 0].isfinite().all():
        assert_close(out[0, 0].double(), exact[0, 0], _tolerance(q.dtype), case)


def _tolerance(dtype: torch.dtype) -> float:
    return 1e-5 if dtype in (torch.float32, torch.float64) else 3e-2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nan_reaches_the_gradients_of_few_keys(backend: str | None, dtype: torch.dtype) -> None:
    for mask in (None, gf.Causal()):
        q, k, v = (x.requires_grad_() for x in operands(3, 3, dtype))
        poisoned = q.index_fill(2, torch.tensor([1]), math.nan)
        out = gf.attention(poisoned, k, v, mask=mask, backend=backend)
        for grad in torch.autograd.grad(out.sum(), (k, v)):
            assert grad[:, :, 0].isnan().all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [-0.7, -0.0, 0.0, 1e-30])
@pytest.mark.parametrize(("L", "S"), [(5, 5), (19, 19), (1, 19), (19, 5), (23, 17), (5, 19)])
def test_a_scale_need_not_be_positive(
    backend: str | None, dtype: torch.dtype, scale: float, L: int, S: int
) -> None:
    inputs = tuple(x.requires_grad_() for x in operands(L, S, dtype))
    exact_inputs = tuple(x.detach().double().requires_grad_() for x in inputs)
    back = torch.randn(1, H, L, D)
    bias = torch.randn(L, S).to(dtype)
    for mask in (None, gf.Causal(), gf.Window(left=2), gf.Causal() & gf.Window(left=99)):
        for given in (None, bias):
            options = {"mask": mask, "scale": scale}
            out = gf.attention(*inputs, **options, bias=given, backend=backend)
            wide = None if given is None else given.double()
            exact = reference.attention(*exact_inputs, **options, bias=wide)
            assert_close(out.double(), exact, _tolerance(dtype))
            for got, right in zip(
                torch.autograd.grad(out, inputs, back.to(dtype)),
                torch.autograd.grad(exact, exact_inputs, back.double()),
                strict=True,
            ):
                assert_close(got.double(), right, 8 * _tolerance(dtype))


def test_dropout_with_a_scale_that_is_not_positive() -> None:
    q, k, _ = operands(19, 19)
    v = torch.eye(19).expand(1, H, 19, 19)
    for scale in (-0.7, 0.0):
        out = gf.attention(q, k, v, mask=gf.Causal(), scale=scale, dropout=0.3, backend="sdpa")
        weights = gf.attention_weights(q, k, mask=gf.Causal(), scale=scale)
        kept = out != 0
        assert_close(out[kept], (weights / 0.7)[kept], 1e-5)
        assert 0.5 < (kept.sum() / (weights > 0).sum()).item() < 0.9
