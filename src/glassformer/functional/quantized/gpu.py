"""Products of many rows with weights of one byte on a GPU, which are read as they are."""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from glassformer.functional.triton_support import triton_refusal

MOST = 512  # rows: with more, cuBLAS is faster, even if weights are made floats again
_COLUMNS, _CHUNK = 32, 128  # of a program, and of the numbers that it sums at a time


def suits_gpu_kernel(x: Float[Tensor, "M n_in"]) -> bool:
    """Whether `multiply_on_gpu` takes these rows, and is faster than floats."""
    is_half = x.dtype in (torch.bfloat16, torch.float16)
    return is_half and 0 < len(x) <= MOST and triton_refusal(x.device) is None


def as_kernels_read(numbers: Shaped[Tensor, "n m"]) -> Shaped[Tensor, "n m"]:
    """fp8 as bytes where no instruction converts it: before compute capability 8.9."""
    is_fp8 = numbers.dtype == torch.float8_e4m3fn
    if is_fp8 and numbers.is_cuda and torch.cuda.get_device_capability(numbers.device) < (8, 9):
        numbers = numbers.view(torch.uint8)
    return numbers.contiguous()


def multiply_on_gpu(
    x: Float[Tensor, "M n_in"],
    numbers: Shaped[Tensor, "n_out n_in"],
    scale: Float[Tensor, " n_out"],
    bias: Float[Tensor, " n_out"] | None,
) -> Float[Tensor, "M n_out"]:
    """x numbersᵀ in float32, by columns times `scale`, plus `bias`, in the dtype of x."""
    from glassformer.functional.quantized.gpu_kernels import product_kernel

    x, numbers, (M, K), N = x.contiguous(), as_kernels_read(numbers), x.shape, len(numbers)
    y = x.new_empty(M, N)
    rows = max(16, min(64, 1 << (M - 1).bit_length()))
    launch: Any = product_kernel[-(-N // _COLUMNS), -(-M // rows)]
    with torch.cuda.device_of(y):
        launch(
            x,
            numbers,
            scale,
            y if bias is None else bias,
            y,
            M,
            N,
            K,
            HAS_BIAS=bias is not None,
            BLOCK_M=rows,
            BLOCK_N=_COLUMNS,
            BLOCK_K=_CHUNK,
            num_warps=4,
            num_stages=4,
        )
    return y
