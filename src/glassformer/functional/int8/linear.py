"""Products with int8 weights: the definition, and the fastest way on this device.

    weight[i, j] ≈ integers[i, j] · scale[i]        scale[i] = max |weight[i]| / 127

A row is rounded to 255 steps, so an entry errs by at most half a step. On a CPU the rows of x are
rounded likewise, each by its own largest entry, and integers are multiplied (as Dettmers et al.
2022 do); on a GPU only the weights are.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int8
from torch import Tensor

from glassformer.functional.int8.gpu import multiply_on_gpu, suits_gpu_kernel
from glassformer.functional.int8.kernel import find_kernel

FEW = 16  # rows up to which PyTorch's int8 product beats making the weights float again
WHOLE = 16  # PyTorch 2.13's product is wrong on Arm for other lengths, such as 70 or 129
LEAST, MOST = 4, 1 << 17  # what the kernel takes: outputs, and inputs whose sums fit 32 bits


def quantize_rows(
    weight: Float[Tensor, "*n n_out n_in"],
) -> tuple[Int8[Tensor, "*n n_out n_in"], Float[Tensor, "*n n_out"]]:
    """The nearest int8 numbers, and the scale of each row in float32; also of stacked matrices.

    >>> quantize_rows(torch.tensor([[1.0, -0.5], [0.0, 0.0]]))
    (tensor([[127, -64],
            [  0,   0]], dtype=torch.int8), tensor([0.0079, 0.0000]))
    """
    exact = weight.detach().float()
    scale = exact.abs().amax(dim=-1) / 127
    step = torch.where(scale > 0, scale, 1.0)
    return (exact / step[..., None]).round().to(torch.int8), scale


def dequantize_rows(
    integers: Int8[Tensor, "*n n_out n_in"],
    scale: Float[Tensor, "*n n_out"],
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "*n n_out n_in"]:
    """integers · scale, row by row."""
    return (integers.float() * scale[..., None]).to(dtype)


def int8_linear(
    x: Float[Tensor, "... n_in"],
    weight: Int8[Tensor, "n_out n_in"],
    scale: Float[Tensor, " n_out"],
    bias: Float[Tensor, " n_out"] | None = None,
) -> Float[Tensor, "... n_out"]:
    """x · (weight · scale)ᵀ + bias, in the dtype of x.

    >>> integers, scale = quantize_rows(torch.eye(4))
    >>> int8_linear(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), integers, scale).round(decimals=1)
    tensor([[1., 2., 3., 4.]])
    """
    # Gradients and compiled code go through the definition, which both can follow.
    if torch.compiler.is_compiling() or x.requires_grad or type(x) is not Tensor or x.is_meta:
        return F.linear(x, dequantize_rows(weight, scale, x.dtype), bias)
    n_out, n_in = weight.shape
    if x.is_cpu and n_out >= LEAST and n_in <= MOST and (kernel := find_kernel()) is not None:
        if x.dtype is torch.float32:
            return kernel(x.contiguous(), weight, scale, bias)
        exact_bias = None if bias is None else bias.float()
        return kernel(x.float().contiguous(), weight, scale, exact_bias).to(x.dtype)
    rows = x.reshape(-1, n_in)  # … n_in → M n_in
    if suits_gpu_kernel(rows):
        return multiply_on_gpu(rows, weight, scale, bias).reshape(*x.shape[:-1], n_out)
    if len(rows) > FEW or n_in % WHOLE:
        return F.linear(x, dequantize_rows(weight, scale, x.dtype), bias)
    y = torch.ops.aten._weight_int8pack_mm(rows.contiguous(), weight, scale.to(x.dtype))
    y = y if bias is None else y + bias
    return y.reshape(*x.shape[:-1], n_out)
