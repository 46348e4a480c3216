"""Rounding to 8 bits: the kernel against PyTorch's own conversion, and what a scale must keep."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.training.float8_matrices import (
    GRADIENTS,
    OPERANDS,
    _round,
    _round_by_torch,
    round_gelu,
    round_gelu_gradient,
    round_gradient,
    round_matrix,
)
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

FORMATS = [OPERANDS, GRADIENTS]


def same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.cpu().view(torch.uint8), b.cpu().view(torch.uint8))


@pytest.mark.plain
def test_the_interpreter_agrees_with_pytorch() -> None:
    check_in_interpreter(__file__, only="kernel")


@needs_kernels
@pytest.mark.parametrize("shape", [(4, 1), (20, 36), (132, 257), (256, 128)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", FORMATS)
def test_the_kernel_writes_both_orders(shape, dtype, kind):
    """Of numbers that the format holds: Triton's interpreter rounds others unlike a GPU."""
    x = torch.randint(-8, 9, shape).to(dtype) / 64
    found = _round(x.to(DEVICE), None, "plain", kind, True)
    expected = _round_by_torch(x, None, x, "plain", kind, True)
    assert same_bits(found[0], expected[0])
    assert same_bits(found[1], expected[0].t().contiguous())
    torch.testing.assert_close(found[2].cpu(), expected[2], rtol=0, atol=0)
    torch.testing.assert_close(found[3].cpu(), expected[3])
    restored = found[0].cpu().float() * found[2].cpu()
    torch.testing.assert_close(restored, x.float(), rtol=0, atol=0)


@needs_kernels
@pytest.mark.parametrize("gradient", [False, True])
def test_the_kernel_computes_gelu_and_its_derivative(gradient):
    x, above = torch.randn(132, 40), torch.randn(132, 40) / 1000
    given, kind = (above, "derivative") if gradient else (None, "gelu")
    args = (x.to(DEVICE), None if given is None else given.to(DEVICE), kind, GRADIENTS, True)
    found = _round(*args)
    expected = _round_by_torch(x, given, x if given is None else given, kind, GRADIENTS, True)
    torch.testing.assert_close(found[2].cpu(), expected[2], rtol=0, atol=0)
    torch.testing.assert_close(found[3].cpu(), expected[3], rtol=1e-5, atol=1e-5)
    if not INTERPRETED:
        assert (found[0].cpu().float() != expected[0].float()).float().mean() < 1e-3
        assert same_bits(found[1], found[0].t().contiguous())


@pytest.mark.gpu
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_rounds_as_pytorch_does(kind, dtype):
    x = torch.randn(1024, 768, device="cuda", dtype=dtype)
    x[5, 7], x[7, 8], x[8, 9] = 1e9, -1e9, torch.nan  # only every third row is sampled
    found = _round(x, None, "plain", kind, False)
    expected = _round_by_torch(x, None, x[::3], "plain", kind, False)
    assert torch.equal(found[2], expected[2])
    assert same_bits(found[0], expected[0]) and same_bits(found[1], expected[1])
    assert found[0][5, 7].float() == torch.finfo(kind).max and found[0][8, 9].float().isnan()


@pytest.mark.parametrize("size", [1e-30, 1e-7, 1.0, 3e4, 1e30])
def test_precision_does_not_depend_on_the_size(size):
    torch.manual_seed(0)
    x = torch.randn(64, 48) * size
    rounded = round_matrix(x)
    error = (rounded.rows.float() * rounded.scale - x).abs() / x.abs().clamp(min=size / 100)
    assert error.max() <= 2**-4  # half a unit of three bits
    assert torch.frexp(rounded.scale)[0] == 0.5  # a power of two


def test_zeros_have_a_scale():
    rounded = round_matrix(torch.zeros(16, 16))
    assert rounded.scale == 1 and not rounded.rows.float().any()


@pytest.mark.parametrize("shape", [(1, 5), (5, 1)])
def test_a_row_and_a_column_do_not_share_memory_with_their_transposes(shape):
    rounded = round_matrix(torch.ones(shape))
    assert rounded.rows.shape == shape and rounded.columns.shape == shape[::-1]
    assert rounded.rows.data_ptr() != rounded.columns.data_ptr()


def test_outliers_within_14_times_the_sample_keep_their_size():
    x = torch.rand(4096, 128) + 0.5  # two rows of three are not sampled
    x[1, 3] = 14.0
    rounded = round_matrix(x)
    assert float(rounded.rows[1, 3]) * float(rounded.scale) == 14.0
    x[1, 3] = 1e6
    rounded = round_matrix(x)
    assert float(rounded.rows[1, 3]) == torch.finfo(OPERANDS).max
    assert torch.equal(rounded.columns.t().float(), rounded.rows.float())


def test_gelu_and_gradients():
    torch.manual_seed(0)
    x, above = torch.randn(160, 32), torch.randn(160, 32)
    hidden = round_gelu(x)
    expected = F.gelu(x)
    found = hidden.rows.float() * hidden.scale
    torch.testing.assert_close(found, expected, rtol=2**-4, atol=2**-8)
    for (rounded, sums), exact in (
        (round_gradient(above), above),
        (round_gelu_gradient(x, above), torch.ops.aten.gelu_backward(above, x)),
    ):
        found = rounded.columns.t().float() * rounded.scale
        torch.testing.assert_close(found, exact, rtol=2**-3, atol=2**-12)
        torch.testing.assert_close(sums, exact.sum(0), rtol=1e-5, atol=1e-5)
    assert round_gradient(above, sums=False)[1] is None
