"""Matrices in int8: a quarter of the memory of float32, which is what decoding waits for.

Reading order: linear (what int8 means, and the product), weight (a matrix that modules hold),
kernel and kernel.c (the product on a CPU), gpu and gpu_kernels (on a GPU).
"""

from glassformer.functional.int8.linear import dequantize_rows, int8_linear, quantize_rows
from glassformer.functional.int8.weight import Int8Weight, as_parameter, find_numbers

__all__ = [
    "Int8Weight",
    "as_parameter",
    "dequantize_rows",
    "find_numbers",
    "int8_linear",
    "quantize_rows",
]
