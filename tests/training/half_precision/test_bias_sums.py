"""Biases whose gradients are summed on the way, against PyTorch's own gradients in float64."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.training.half_precision import bias_sums
from glassformer.training.half_precision.bias_sums import (
    biased_gelu,
    can_sum_on_the_way,
    project_heads,
)
from triton_interpreter import DEVICE, check_in_interpreter, needs_kernels

SHAPES = [(2, 3), (7, 129), (5 * 53, 131), (600, 64)]  # some rows and columns past a block's


@pytest.mark.plain
def test_the_interpreter_agrees_with_the_definition() -> None:
    check_in_interpreter(__file__, only="kernels")


def compare_gelu(device: str, n_rows: int, n_columns: int) -> None:
    torch.manual_seed(0)
    x, gradient = torch.randn(2, n_rows, n_columns, device=device).mul(2).unbind(0)
    bias = torch.randn(n_columns, device=device)
    operands = [x.requires_grad_(), bias.requires_grad_()]
    exact = [t.detach().double().requires_grad_() for t in operands]
    expected = F.gelu(exact[0] + exact[1])
    found = biased_gelu(x, bias)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=2e-6)
    wanted = torch.autograd.grad(expected, exact, gradient.double())
    got = torch.autograd.grad(found, operands, gradient)
    torch.testing.assert_close(got[0].double(), wanted[0], rtol=1e-6, atol=5e-6)
    torch.testing.assert_close(got[1].double(), wanted[1], rtol=1e-5, atol=1e-4)


def compare_heads(device: str, layout: str, counts: tuple[int, ...] = (6, 3, 3)) -> None:
    torch.manual_seed(0)
    B, L, D = 3, 97, 8
    x = torch.randn(B, L, 11, device=device)
    layer = nn.Linear(11, sum(counts) * D).to(device)
    gradients = [torch.randn(B, n, L, D, device=device).transpose(1, 2) for n in counts]
    if layout == "tokens first":
        gradients = [each.contiguous() for each in gradients]
    if layout == "columns apart":
        gradients = [each.repeat_interleave(2, -1)[..., ::2] for each in gradients]
    parameters = list(layer.parameters())
    groups = project_heads(x, *parameters, counts)
    got = torch.autograd.grad(groups, parameters, gradients)
    exact = nn.Linear(11, sum(counts) * D).double().to(device)
    exact.load_state_dict(layer.state_dict())
    expected = exact(x.double()).unflatten(-1, (-1, D)).split(counts, 2)
    for found, group in zip(groups, expected, strict=True):
        torch.testing.assert_close(found.double(), group, rtol=1e-5, atol=1e-5)
    wide = [each.double() for each in gradients]
    wanted = torch.autograd.grad(expected, list(exact.parameters()), wide)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-4)


@needs_kernels
@pytest.mark.parametrize(("n_rows", "n_columns"), SHAPES)
def test_kernels_of_gelu(n_rows: int, n_columns: int) -> None:
    compare_gelu(DEVICE, n_rows, n_columns)


@needs_kernels
@pytest.mark.parametrize("layout", ["heads first", "tokens first", "columns apart"])
def test_kernels_of_heads(layout: str) -> None:
    compare_heads(DEVICE, layout)


@pytest.mark.parametrize(("n_rows", "n_columns"), SHAPES)
def test_gelu_without_kernels(n_rows: int, n_columns: int) -> None:
    compare_gelu("cpu", n_rows, n_columns)


@pytest.mark.parametrize("counts", [(6, 3, 3), (2, 5)])
def test_heads_without_kernels(counts: tuple[int, ...]) -> None:
    compare_heads("cpu", "heads first", counts)


def test_only_plain_biased_layers(monkeypatch) -> None:
    x = torch.randn(2, 3)
    assert not can_sum_on_the_way(nn.Linear(3, 5), x)
    monkeypatch.setattr(bias_sums, "learns_plainly", lambda layer, x: True)
    assert can_sum_on_the_way(nn.Linear(3, 5), x)
    assert not can_sum_on_the_way(nn.Linear(3, 5, bias=False), x)
    assert not can_sum_on_the_way(nn.LayerNorm(3), x)


@pytest.mark.parametrize("work", ["gelu", "heads"])
def test_gradients_of_gradients(work: str) -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 3, 4), torch.randn(12, 4), torch.randn(12)
    operands = [each.double().requires_grad_() for each in (x, weight, bias)]

    def ours(x, weight, bias):
        if work == "gelu":
            return biased_gelu(F.linear(x, weight), bias)
        return torch.cat(project_heads(x, weight, bias, (2, 1, 1)), 2).square()

    def theirs(x, weight, bias):
        out = F.linear(x, weight, bias)
        return F.gelu(out) if work == "gelu" else out.unflatten(-1, (4, 3)).square()

    found, expected = (
        torch.autograd.grad(
            sum(g.sin().sum() for g in torch.autograd.grad(out, operands, create_graph=True)),
            operands,
        )
        for out in (f(*operands).sin().sum() for f in (ours, theirs))
    )
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)  # float32 inside
