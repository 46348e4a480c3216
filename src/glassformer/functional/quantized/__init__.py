"""Matrices of one byte a number: a quarter of the memory of float32, which decoding waits for.

Reading order: linear (what int8 and fp8 mean, and the product), weight (a matrix that modules
hold), kernel and kernel.c (the product in int8 on a CPU), gpu and gpu_kernels (both on a GPU).
"""

from glassformer.functional.quantized.linear import (
    KINDS,
    dequantize_rows,
    quantize_rows,
    quantized_linear,
)
from glassformer.functional.quantized.weight import QuantizedWeight, as_parameter, find_numbers

__all__ = [
    "KINDS",
    "QuantizedWeight",
    "as_parameter",
    "dequantize_rows",
    "find_numbers",
    "quantize_rows",
    "quantized_linear",
]
