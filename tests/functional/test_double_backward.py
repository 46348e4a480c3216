"""Second derivatives: right, or an error, never a silent half of them."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close

SHAPES = ((1, 2, 3, 2), (1, 1, 4, 2), (1, 1, 4, 3), (8, 2))


def leaves(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.randn(*n, dtype=torch.float64, requires_grad=True) for n in shapes]


@pytest.mark.parametrize("budget", [1, 300, 1 << 26])
@pytest.mark.parametrize(("softcap", "dropout"), [(None, 0.0), (1.7, 0.0), (1.7, 0.3)])
def test_streaming_can_be_differentiated_twice(
    budget: int, softcap: float | None, dropout: float
) -> None:
    def run(q, k, v, table) -> torch.Tensor:
        torch.manual_seed(5)
        options = {
            "mask": gf.Causal() & gf.Window(1),
            "bias": gf.RelativeBuckets(table, max_distance=5) + torch.ones(3, 4).double(),
            "softcap": softcap,
            "dropout": dropout,
        }
        with gf.memory_budget(budget):
            return gf.attention(q, k, v, **options, backend="streaming")

    assert torch.autograd.gradgradcheck(run, leaves(*SHAPES))


def test_rows_with_nothing_allowed_have_second_derivatives_of_zero() -> None:
    mask = gf.Explicit.from_drawing("■ · ■ · / · · · · / ■ ■ ■ ■")

    def run(q, k, v) -> torch.Tensor:
        return gf.attention(q, k, v, mask=mask, backend="streaming")

    assert torch.autograd.gradgradcheck(run, leaves(*SHAPES[:3]))


def up_to_third(backend: str, x: torch.Tensor) -> list[torch.Tensor]:
    found, out = (
        [],
        gf.attention(x, x.sin() + x, x.cos(), mask=gf.Causal(), softcap=2.0, backend=backend),
    )
    for _ in range(3):
        (out,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        found.append(out.detach())
    return found


def test_keys_computed_from_queries_and_third_derivatives() -> None:
    (x,) = leaves((1, 2, 5, 3))
    both = zip(up_to_third("streaming", x), up_to_third("reference", x), strict=True)
    for got, right in both:
        assert_close(got / right.abs().max(), right / right.abs().max(), 1e-12)


@pytest.mark.parametrize("options", [{"softcap": 3.0}, {"mask": gf.Causal() & gf.Window(5)}])
def test_a_gradient_penalty_through_what_is_chosen(options: dict) -> None:
    """Soft-capping, and a sparse mask on a long input: both go to streaming."""
    L = 40 if "softcap" in options else 1100
    inputs = [torch.randn(1, 1, L, 4, requires_grad=True) for _ in range(3)]
    assert gf.explain(*inputs, **options).backend == "streaming"

    def penalty(backend: str | None) -> tuple[torch.Tensor, ...]:
        out = gf.attention(*inputs, **options, backend=backend)
        first = torch.autograd.grad(out.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), inputs)

    for got, right in zip(penalty(None), penalty("reference"), strict=True):
        assert right.abs().max() > 0.1
        assert_close(got, right, 1e-4 * right.abs().max().item())


def test_half_precision_and_autocast_keep_their_dtypes() -> None:
    inputs = [torch.randn(1, 2, 5, 4, requires_grad=True) for _ in range(3)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = gf.attention(*inputs, softcap=2.0)
        first = torch.autograd.grad(out.float().square().sum(), inputs, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
    assert out.dtype == torch.bfloat16
    assert all(g.dtype == torch.float32 and g.isfinite().all() for g in (*first, *second))


def test_the_fused_kernel_says_that_it_cannot() -> None:
    q, k, v = (torch.randn(1, 2, 19, 8, requires_grad=True) for _ in range(3))
    out = gf.attention(q, k, v, mask=gf.Causal(), backend="sdpa")
    first = torch.autograd.grad(out.square().sum(), (q, k, v), create_graph=True)
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        torch.autograd.grad(first[0].sum(), q)
