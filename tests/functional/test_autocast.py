"""Under `torch.autocast` all backends cast alike, and nothing is rounded twice."""

import pytest
import torch
import torch.nn.functional as F

import glassformer as gf
from closeness import assert_close, assert_same

LOW = (torch.bfloat16, torch.float16)
BACKENDS = ("sdpa", "streaming", "reference", None)
SINGLE, HALF, DOUBLE = torch.float32, torch.bfloat16, torch.float64


def operands(*dtypes: torch.dtype) -> tuple[torch.Tensor, ...]:
    sizes = (19, 23, 23)
    return tuple(torch.randn(2, 4, n, 8).to(t) for n, t in zip(sizes, dtypes, strict=True))


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "dtypes", [(SINGLE,) * 3, (SINGLE, HALF, HALF), (HALF, SINGLE, torch.float16), (DOUBLE,) * 3]
)
def test_dtypes_are_those_of_the_fused_function(
    low: torch.dtype, backend: str | None, dtypes: tuple[torch.dtype, ...]
) -> None:
    q, k, v = operands(*dtypes)
    bias = torch.randn(19, 23)
    for options in ({}, {"mask": gf.Causal()}, {"bias": bias.double()} if DOUBLE in dtypes else {}):
        with torch.autocast("cpu", dtype=low):
            theirs = F.scaled_dot_product_attention(q, k, v)
            out = gf.attention(q, k, v, **options, backend=backend)
        assert out.dtype == theirs.dtype == (DOUBLE if DOUBLE in dtypes else low)
        plain = gf.attention(*(x.to(out.dtype) for x in (q, k, v)), **options, backend=backend)
        assert_same(out, plain)


@pytest.mark.parametrize("backend", ("streaming", "reference", None))
def test_soft_capping_under_autocast(backend: str | None) -> None:
    inputs = tuple(x.requires_grad_() for x in operands(SINGLE, SINGLE, SINGLE))
    with torch.autocast("cpu", dtype=HALF):
        out = gf.attention(*inputs, softcap=2.0, backend=backend)
        grads = torch.autograd.grad(out.float().sum(), inputs)
    halves = tuple(x.detach().to(HALF).requires_grad_() for x in inputs)
    plain = gf.attention(*halves, softcap=2.0, backend=backend)
    assert out.dtype == HALF
    assert_same(out, plain)
    for got, right in zip(grads, torch.autograd.grad(plain.float().sum(), halves), strict=True):
        assert got.dtype == SINGLE
        assert_close(got, right.float(), 1e-2)


@pytest.mark.parametrize("backend", ("sdpa", "streaming", "reference", None))
def test_a_learned_bias_is_cast_and_gets_its_gradient(backend: str | None) -> None:
    q, k, v = operands(SINGLE, SINGLE, SINGLE)
    table = torch.randn(8, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=HALF):
        out = gf.attention(q, k, v, bias=gf.RelativeBuckets(table), backend=backend)
        (grad,) = torch.autograd.grad(out.float().sum(), table)
    assert out.dtype == HALF and grad.dtype == SINGLE
    exact = gf.attention(*(x.to(HALF).double() for x in (q, k, v)), bias=gf.RelativeBuckets(table))
    assert_close(out.float(), exact.float(), 3e-2)


def test_a_formula_is_not_rounded() -> None:
    """In bfloat16, ALiBi could not tell neighbours apart at a distance of 300 keys."""
    q, k, v = (torch.randn(1, 8, n, 8) for n in (1, 700, 700))
    bias = gf.ALiBi.of_heads(8)
    with torch.autocast("cpu", dtype=HALF):
        assert gf.explain(q, k, v, bias=bias).backend == "streaming"
        out = gf.attention(q, k, v, bias=bias)
    exact = gf.attention(*(x.to(HALF).double() for x in (q, k, v)), bias=bias)
    assert_close(out.double(), exact, 1e-2)


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_finite_bias_stays_finite(low: torch.dtype, backend: str | None) -> None:
    """A row of float32's lowest number is an ordinary row; −∞ would empty it."""
    q, k, v = operands(SINGLE, SINGLE, SINGLE)
    bias = torch.zeros(19, 23)
    bias[3] = torch.finfo(SINGLE).min
    bias[4] = -torch.inf
    with torch.autocast("cpu", dtype=low):
        out = gf.attention(q, k, v, bias=bias, backend=backend)
    assert out.isfinite().all()
    assert out[:, :, 3].abs().amax() > 0.05
    assert not out[:, :, 4].any()


def test_statistics_are_computed_in_full_precision() -> None:
    q, k, _ = operands(SINGLE, SINGLE, SINGLE)
    plain = gf.attention_statistics(q, k, mask=gf.Causal())
    with torch.autocast("cpu", dtype=HALF):
        found = gf.attention_statistics(q, k, mask=gf.Causal())
        lse = gf.attention_lse(q, k, mask=gf.Causal())
        tile = gf.attention_tile(q, k, lse, [3], slice(0, 9), mask=gf.Causal())
    assert_same(found.lse, plain.lse)
    assert_same(lse, plain.lse)
    assert_same(tile, gf.attention_tile(q, k, plain.lse, [3], slice(0, 9), mask=gf.Causal()))


@pytest.mark.plain
def test_autocast_inside_a_compiled_graph() -> None:
    q, k, v = operands(SINGLE, SINGLE, SINGLE)

    def run(q, k, v):
        with torch.autocast("cpu", dtype=HALF):
            return gf.attention(q, k, v, mask=gf.Causal())

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert_same(compiled(q, k, v), run(q, k, v))
