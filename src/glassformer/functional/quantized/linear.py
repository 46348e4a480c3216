"""Products with weights of one byte each: the definition, and the fastest way on this device.

    weight[i, j] ≈ numbers[i, j] · scale[i]        scale[i] = max |weight[i]| / largest number

int8 are the integers up to 127: an entry errs by at most half a step, the same for the whole row.
fp8 are floats of 8 bits (e4m3: 3 bits of mantissa, up to 448): an entry errs by at most 1/16 of
itself, so a large one does not blur the small ones of its row (Micikevicius et al. 2022). On a CPU
the rows of x are rounded to int8, too, each by its own largest entry, and integers are multiplied
(as Dettmers et al. 2022 do); on a GPU, and with fp8, only the weights are rounded.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor

from glassformer.functional.quantized.gpu import multiply_on_gpu, suits_gpu_kernel
from glassformer.functional.quantized.kernel import find_kernel

KINDS = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}
_LARGEST = {"int8": 127, "fp8": 448}

FEW = 16  # rows up to which PyTorch's int8 product beats making the weights float again
WHOLE = 16  # PyTorch 2.13's product is wrong on Arm for other lengths, such as 70 or 129
LEAST, MOST = 4, 1 << 17  # what the kernel takes: outputs, and inputs whose sums fit 32 bits


def quantize_rows(
    weight: Float[Tensor, "*n n_out n_in"], kind: str = "int8"
) -> tuple[Shaped[Tensor, "*n n_out n_in"], Float[Tensor, "*n n_out"]]:
    """The nearest numbers of 8 bits, and each row's scale in float32; also of stacked matrices.

    >>> quantize_rows(torch.tensor([[1.0, -0.5], [0.0, 0.0]]))
    (tensor([[127, -64],
            [  0,   0]], dtype=torch.int8), tensor([0.0079, 0.0000]))
    """
    exact = weight.detach().float()
    scale = exact.abs().amax(dim=-1) / _LARGEST[kind]
    steps = exact / torch.where(scale > 0, scale, 1.0)[..., None]
    return (steps.round() if kind == "int8" else steps).to(KINDS[kind]), scale


def dequantize_rows(
    numbers: Shaped[Tensor, "*n n_out n_in"],
    scale: Float[Tensor, "*n n_out"],
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "*n n_out n_in"]:
    """numbers · scale, row by row."""
    return (numbers.float() * scale[..., None]).to(dtype)


def quantized_linear(
    x: Float[Tensor, "... n_in"],
    weight: Shaped[Tensor, "n_out n_in"],
    scale: Float[Tensor, " n_out"],
    bias: Float[Tensor, " n_out"] | None = None,
) -> Float[Tensor, "... n_out"]:
    """x · (weight · scale)ᵀ + bias, in the dtype of x.

    >>> numbers, scale = quantize_rows(torch.eye(4))
    >>> quantized_linear(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), numbers, scale).round(decimals=1)
    tensor([[1., 2., 3., 4.]])
    """
    # Gradients and compiled code go through the definition, which both can follow.
    if torch.compiler.is_compiling() or x.requires_grad or type(x) is not Tensor or x.is_meta:
        return F.linear(x, dequantize_rows(weight, scale, x.dtype), bias)
    (n_out, n_in), is_int8 = weight.shape, weight.dtype == torch.int8
    is_for_c = is_int8 and x.is_cpu and n_out >= LEAST and n_in <= MOST
    if is_for_c and (kernel := find_kernel()) is not None:
        if x.dtype is torch.float32:
            return kernel(x.contiguous(), weight, scale, bias)
        exact_bias = None if bias is None else bias.float()
        return kernel(x.float().contiguous(), weight, scale, exact_bias).to(x.dtype)
    rows = x.reshape(-1, n_in)  # … n_in → M n_in
    if suits_gpu_kernel(rows):
        return multiply_on_gpu(rows, weight, scale, bias).reshape(*x.shape[:-1], n_out)
    if not is_int8 or len(rows) > FEW or n_in % WHOLE:
        return F.linear(x, dequantize_rows(weight, scale, x.dtype), bias)
    y = torch.ops.aten._weight_int8pack_mm(rows.contiguous(), weight, scale.to(x.dtype))
    y = y if bias is None else y + bias
    return y.reshape(*x.shape[:-1], n_out)
