"""The C kernel, as a function of tensors.

PyTorch's own int8 product has no dot-product instructions on Arm: there it is slower than float32
(see benchmarks/RESULTS.md). Where there is no compiler, `find_kernel` says None.
"""

import ctypes
import functools
from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.compilation import INT8
from glassformer.functional.native_library import find_threads, load_library

ONE_THREAD = 1 << 16  # products below which waking another thread costs more than it saves

Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


@functools.cache
def find_kernel() -> Kernel | None:
    """`(x, weight, scale, bias) -> y` for contiguous float32 x on a CPU, if it can be built."""
    library = load_library(INT8)
    return None if library is None else _wrap_library(library)


def _wrap_library(library: ctypes.CDLL) -> Kernel:
    function = library.int8_linear
    pointer = ctypes.c_void_p
    function.argtypes = [pointer] * 5 + [ctypes.c_long] * 3 + [pointer] * 3 + [ctypes.c_uint]
    threads = find_threads()

    def multiply(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        n_out, n_in = weight.shape
        n_rows = x.numel() // n_in
        y = x.new_empty((*x.shape[:-1], n_out))
        failed = function(
            x.data_ptr(),
            weight.data_ptr(),
            scale.data_ptr(),
            None if bias is None else bias.data_ptr(),
            y.data_ptr(),
            n_rows,
            n_out,
            n_in,
            *threads,
            torch.get_num_threads() if n_rows * n_out * n_in > ONE_THREAD else 1,
        )
        if failed:
            raise MemoryError(f"No memory for {n_rows * n_in:,} rounded activations.")
        return y

    return multiply
