"""The LayerNorm beside a residual stream, against PyTorch's own gradients in float64."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.layers.norm import RMSNorm
from glassformer.training.half_precision import residual_norm as module
from glassformer.training.half_precision.residual_norm import can_go_beside, residual_norm
from triton_interpreter import DEVICE, check_in_interpreter, needs_kernels

SHAPES = [(1, 3), (2, 65, 48), (3, 64, 130), (5, 700)]  # some rows past a block's


@pytest.mark.plain
def test_the_interpreter_agrees_with_the_definition() -> None:
    check_in_interpreter(__file__, only="kernels")


def compare(device: str, *shape: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape, device=device).mul(3).add(1).requires_grad_()
    weight, bias = torch.randn(2, shape[-1], device=device).unbind(0)
    operands = [x, weight.requires_grad_(), bias.requires_grad_()]
    above = [torch.randn(shape, device=device) for _ in range(2)]
    exact = [t.detach().double().requires_grad_() for t in operands]
    expected = exact[0], F.layer_norm(exact[0], shape[-1:], *exact[1:], 1e-5)
    found = residual_norm(*operands, 1e-5)
    assert torch.equal(found[0], x)
    torch.testing.assert_close(found[1].double(), expected[1], rtol=1e-5, atol=1e-5)
    wanted = torch.autograd.grad(expected, exact, [each.double() for each in above])
    for a, b in zip(torch.autograd.grad(found, operands, above), wanted, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)


@needs_kernels
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels(shape: tuple[int, ...]) -> None:
    compare(DEVICE, *shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_without_kernels(shape: tuple[int, ...]) -> None:
    compare("cpu", *shape)


def test_only_the_norm_or_only_the_stream_has_a_gradient() -> None:
    x, parameters = torch.randn(4, 8, requires_grad=True), (torch.ones(8), torch.zeros(8))
    stream, y = residual_norm(x, *parameters, 1e-5)
    (alone,) = torch.autograd.grad(y.square().sum(), x, retain_graph=True)
    expected = F.layer_norm(x, (8,)).square().sum()
    torch.testing.assert_close(alone, torch.autograd.grad(expected, x)[0])
    assert torch.equal(torch.autograd.grad(stream.sum(), x)[0], torch.ones(4, 8))


def test_only_plain_norms(monkeypatch) -> None:
    x = torch.randn(2, 3)
    assert not can_go_beside(nn.LayerNorm(3), x)
    monkeypatch.setattr(module, "learns_plainly", lambda norm, x: True)
    assert can_go_beside(nn.LayerNorm(3), x)
    assert not can_go_beside(RMSNorm(3), x)
    assert not can_go_beside(nn.LayerNorm(3, bias=False), x)
    assert not can_go_beside(nn.LayerNorm(3, elementwise_affine=False), x)
    assert not can_go_beside(nn.LayerNorm((2, 3)), x)
    assert not can_go_beside(nn.LayerNorm(8193), torch.randn(2, 8193))


def test_gradients_of_gradients() -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(5, 4, dtype=torch.double), torch.randn(4), torch.randn(4)
    operands = [each.double().requires_grad_() for each in (x, weight, bias)]

    def theirs(x, weight, bias, eps):
        return x, F.layer_norm(x, (4,), weight, bias, eps)

    found, expected = (
        torch.autograd.grad(
            sum(g.sin().sum() for g in torch.autograd.grad(out, operands, create_graph=True)),
            operands[:2],
        )
        for out in (
            (a.sin() + b.cos()).sum()
            for a, b in (f(*operands, 1e-5) for f in (residual_norm, theirs))
        )
    )
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)  # float32 inside
