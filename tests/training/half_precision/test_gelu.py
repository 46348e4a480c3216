"""GELU for training in half precision: its kernels against the definition in float64."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.layers import FeedForward
from glassformer.training.half_precision.gelu import _launch, half_precision_gelu
from triton_interpreter import DEVICE, check_in_interpreter, needs_kernels


@pytest.mark.plain
def test_the_interpreter_agrees_with_the_definition() -> None:
    check_in_interpreter(__file__, only="kernels")


@needs_kernels
def test_the_kernels_by_the_definition():
    x = torch.cat([torch.linspace(-9, 9, 4001), torch.tensor([0.0, -30.0, 30.0, 1e-4, -1e-4])])
    gradient = torch.randn(len(x))
    exact = x.double().requires_grad_()
    value = F.gelu(exact)
    (slope,) = torch.autograd.grad(value, exact, gradient.double())
    # In float32 the approximation itself shows.
    found = _launch("gelu_kernel", x.to(DEVICE)).cpu().double()
    torch.testing.assert_close(found, value.detach(), rtol=1e-6, atol=5e-7)
    found = _launch("gelu_backward_kernel", x.to(DEVICE), gradient.to(DEVICE)).cpu().double()
    torch.testing.assert_close(found, slope, rtol=1e-6, atol=2e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("compiled", [False, True])
def test_half_precision_is_rounded_once(dtype, compiled):
    torch.manual_seed(0)
    x = (3 * torch.randn(7, 33, 65, device="cuda")).to(dtype)[:, 1:].requires_grad_()
    gradient = torch.randn(7, 32, 65, device="cuda").to(dtype)
    work = torch.compile(half_precision_gelu, fullgraph=True) if compiled else half_precision_gelu
    value = work(x)
    (slope,) = torch.autograd.grad(value, x, gradient)
    exact = x.detach().double().requires_grad_()
    expected = F.gelu(exact)
    (wanted,) = torch.autograd.grad(expected, exact, gradient.double())
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(value.double(), expected.detach(), rtol=0.51 * unit, atol=1e-6)
    torch.testing.assert_close(slope.double(), wanted, rtol=0.51 * unit, atol=5e-6)


def test_everywhere_else_it_is_pytorchs():
    x = torch.randn(5)
    assert torch.equal(half_precision_gelu(x), F.gelu(x))
    layer = FeedForward(4, 8, activation="gelu")
    assert torch.equal(layer.train()(x[:4]), layer.eval()(x[:4]))
