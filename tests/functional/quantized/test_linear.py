"""Products with weights of one byte beside the definition in float64, by every way there is."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import assert_close, assert_same
from glassformer.functional.quantized import (
    KINDS,
    dequantize_rows,
    linear,
    quantize_rows,
    quantized_linear,
)
from glassformer.functional.quantized.gpu import MOST, multiply_on_gpu
from glassformer.functional.quantized.kernel import find_kernel
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

SHAPES = [(1, 7, 13), (2, 5, 64), (3, 37, 129), (4, 4, 70), (11, 131, 200), (19, 6, 1)]


def operands(n_rows: int, n_out: int, n_in: int, kind: str = "int8"):
    generator = torch.Generator().manual_seed(n_rows)
    x, weight, bias = (
        torch.randn(size, generator=generator) for size in ((n_rows, n_in), (n_out, n_in), (n_out,))
    )
    return x, *quantize_rows(weight, kind), bias


def exact(x, weight, scale, bias):
    return F.linear(x.double(), weight.double() * scale.double()[:, None], bias.double())


def allowed(x, weight, scale) -> torch.Tensor:
    """Half a step of each entry of x, times what it is multiplied with; and float32's own error."""
    half = x.abs().amax(-1, keepdim=True) / 127 / 2
    return half * (weight.abs().float() * scale[:, None]).sum(1) + 1e-4


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_entries_err_by_at_most_half_a_step(n_out: int, n_in: int, seed: int) -> None:
    weight = torch.randn(n_out, n_in, generator=torch.Generator().manual_seed(seed))
    weight[0] = 0
    numbers, scale = quantize_rows(weight)
    error = (dequantize_rows(numbers, scale) - weight).abs()
    assert bool((error <= scale[:, None] * 0.5001).all())
    assert int(numbers.abs().max()) <= 127


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_entries_of_fp8_err_by_a_sixteenth_of_themselves(n_out: int, n_in: int, seed: int) -> None:
    """Below a 2^-6th of a step, where floats of 8 bits are evenly spaced, by half of a 2^-9th."""
    weight = torch.randn(n_out, n_in, generator=torch.Generator().manual_seed(seed)) ** 5
    weight[0] = 0
    numbers, scale = quantize_rows(weight, "fp8")
    error = (dequantize_rows(numbers, scale) - weight).abs()
    assert bool((error <= torch.maximum(weight.abs() / 16, scale[:, None] / 1024) * 1.0001).all())
    assert float(numbers.float().abs().max()) <= 448


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fp8_on_a_cpu_rounds_nothing_but_weights(shape, dtype: torch.dtype) -> None:
    x, weight, scale, bias = operands(*shape, "fp8")
    x, bias = x.to(dtype), bias.to(dtype)
    found = quantized_linear(x, weight, scale, bias)
    expected = exact(x, weight, scale, bias)
    assert found.dtype == dtype
    worst = 4 * torch.finfo(dtype).eps * float((x.abs().double().sum(-1).max()) * 3 + 3)
    assert_close(found.double(), expected, atol=worst)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_beside_the_definition(shape) -> None:
    x, weight, scale, bias = operands(*shape)
    error = (quantized_linear(x, weight, scale, bias) - exact(x, weight, scale, bias)).abs()
    assert bool((error <= allowed(x, weight, scale)).all())


@pytest.mark.parametrize("shape", [*SHAPES, (40, 9, 17), (3, 7, 160)])
def test_without_a_kernel(shape, monkeypatch) -> None:
    """Few rows go to PyTorch's product, many are multiplied with floats: only weights are int8."""
    monkeypatch.setattr(linear, "find_kernel", lambda: None)
    x, weight, scale, bias = operands(*shape)
    found = quantized_linear(x, weight, scale, bias)
    assert_close(found, exact(x, weight, scale, bias), atol=1e-4)
    assert_close(
        quantized_linear(x, weight, scale),
        exact(x, weight, scale, torch.zeros_like(bias)),
        atol=1e-4,
    )


def test_a_row_is_the_same_in_any_batch_and_on_any_number_of_threads() -> None:
    x, weight, scale, bias = operands(11, 131, 700)
    together = quantized_linear(x, weight, scale, bias)
    assert_same(
        together, torch.cat([quantized_linear(row[None], weight, scale, bias) for row in x])
    )
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1 if before > 1 else 2)
        assert_same(quantized_linear(x, weight, scale, bias), together)
    finally:
        torch.set_num_threads(before)


def test_dimensions_strides_and_dtypes() -> None:
    x, weight, scale, bias = operands(6, 5, 64)
    flat = quantized_linear(x, weight, scale, bias)
    assert_same(
        quantized_linear(x.unflatten(0, (2, 3)), weight, scale, bias), flat.unflatten(0, (2, 3))
    )
    assert_same(quantized_linear(x[0], weight, scale, bias), flat[0])
    assert_same(quantized_linear(x.T.contiguous().T, weight, scale, bias), flat)
    assert quantized_linear(x[:0], weight, scale, bias).shape == (0, 5)
    half = quantized_linear(x.bfloat16(), weight, scale, bias.bfloat16())
    assert half.dtype == torch.bfloat16
    assert_close(half.float(), flat, atol=0.2)


def test_nan_infinity_and_nothing_stay_visible() -> None:
    x, weight, scale, bias = operands(4, 7, 13)
    x[0, 3], x[1, 5], x[2], x[3] = torch.nan, -torch.inf, 0.0, 1e-42
    found = quantized_linear(x, weight, scale, bias)
    assert bool(found[:2].isnan().all())
    assert_same(found[2], bias)
    assert_same(found[3], bias)


def test_gradients_go_through_the_definition() -> None:
    x, weight, scale, bias = operands(3, 7, 13)
    x.requires_grad_()
    quantized_linear(x, weight, scale, bias).sum().backward()
    assert x.grad is not None
    assert_close(x.grad, dequantize_rows(weight, scale).sum(0).expand_as(x), atol=1e-5)


def test_the_meta_device() -> None:
    x, weight, scale, bias = (each.to("meta") for each in operands(3, 7, 13))
    assert quantized_linear(x, weight, scale, bias).shape == (3, 7)


def test_the_kernel_is_found_where_there_is_a_compiler() -> None:
    import shutil

    assert (find_kernel() is not None) == (shutil.which("cc") is not None)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n_rows", [1, 8, 40, MOST + 1])
def test_on_a_gpu(n_rows: int, dtype: torch.dtype, kind: str) -> None:
    x, weight, scale, bias = (each.cuda() for each in operands(n_rows, 128, 256, kind))
    found = quantized_linear(x.to(dtype), weight, scale, bias.to(dtype))
    worst = 1e-3 if dtype == torch.float32 else 0.5
    assert found.dtype == dtype
    assert_close(found.double(), exact(x.to(dtype), weight, scale, bias.to(dtype)), atol=worst)


@pytest.mark.plain
def test_the_interpreter_agrees() -> None:
    check_in_interpreter(__file__, only="kernel_on_a_gpu")


@needs_kernels
# The interpreter multiplies bfloat16 wrongly.
@pytest.mark.parametrize(
    "dtype", [torch.float16] if INTERPRETED else [torch.float16, torch.bfloat16]
)
@pytest.mark.parametrize("shape", [*SHAPES, (70, 33, 300)])
@pytest.mark.parametrize("kind", [*KINDS, "bytes of fp8"])
def test_the_kernel_on_a_gpu(shape, dtype: torch.dtype, kind: str) -> None:
    x, weight, scale, bias = (
        each.to(DEVICE) for each in operands(*shape, "int8" if kind == "int8" else "fp8")
    )
    x, bias = x.to(dtype), bias.to(dtype)
    if kind == "int8":
        weight.view(-1)[0] = -128  # nothing that we make has it, but it is a number, too
    expected = exact(x, weight, scale, bias)
    weight = weight.view(torch.uint8) if kind == "bytes of fp8" else weight
    worst = 2 * torch.finfo(dtype).eps * float(expected.abs().max())
    assert_close(multiply_on_gpu(x, weight, scale, bias).double(), expected, atol=worst)
    without = multiply_on_gpu(x, weight, scale, None).double() + bias.double()
    assert_close(without, expected, atol=2 * worst)


@needs_kernels
@pytest.mark.parametrize("as_bytes", [False, True])
def test_each_float_of_8_bits_is_itself_in_the_kernel_on_a_gpu(as_bytes: bool) -> None:
    """Subnormal ones and both zeros, too; 127 and 255 are NaN."""
    stored = torch.tensor([n for n in range(256) if n not in (127, 255)], dtype=torch.uint8)
    weight = stored.to(DEVICE)[None]
    numbers = weight.view(torch.float8_e4m3fn)
    x = torch.eye(254, device=DEVICE, dtype=torch.float16)
    y = multiply_on_gpu(x, weight if as_bytes else numbers, torch.ones(1, device=DEVICE), None)
    assert_same(y[:, 0].float(), numbers[0].float())
