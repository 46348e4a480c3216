"""GELU for training in half precision on a GPU.

x Φ(x) is bound by memory only where Φ is cheap: an error function takes longer than reading and
writing. Here Φ is Abramowitz and Stegun's approximation 7.1.26 of it, within 8e-8 (bfloat16 and
float16 round to 2e-3 and 5e-4), and its exponential also serves the derivative.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.triton_support import triton_refusal
from glassformer.training.half_precision.conditions import (
    HALF,
    is_differentiated_again,
    takes_kernels,
)

_BLOCK = 2048  # numbers of a program of 4 warps


def half_precision_gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """`F.gelu(x)`, by kernels of our own where x is a GPU's and of 16 bits."""
    if x.dtype in HALF and takes_kernels(x):
        return _gelu(x)
    return F.gelu(x)


def _launch(name: str, *tensors: Tensor) -> Tensor:
    from glassformer.training.half_precision import gelu_kernels

    tensors = tuple(each.contiguous() for each in tensors)
    out, n = torch.empty_like(tensors[0]), tensors[0].numel()
    if n:
        launch = getattr(gelu_kernels, name)[(-(-n // _BLOCK),)]
        with torch.cuda.device_of(out):
            launch(*tensors, out, n, BLOCK=_BLOCK, num_warps=4)
    return out


@torch.library.custom_op("glassformer::gelu", mutates_args=())
def _gelu(x: Tensor) -> Tensor:
    return F.gelu(x) if triton_refusal(x.device) else _launch("gelu_kernel", x)


@torch.library.custom_op("glassformer::gelu_backward", mutates_args=())
def _gelu_backward(x: Tensor, gradient: Tensor) -> Tensor:
    if triton_refusal(x.device):
        return torch.ops.aten.gelu_backward(gradient, x)
    return _launch("gelu_backward_kernel", x, gradient)


@_gelu.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@_gelu_backward.register_fake
def _(x: Tensor, gradient: Tensor) -> Tensor:
    del gradient
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _keep_input(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    del output
    ctx.save_for_backward(*inputs)


def _backward(ctx, gradient):  # type: ignore[no-untyped-def]
    (x,) = ctx.saved_tensors
    if is_differentiated_again():
        return torch.ops.aten.gelu_backward(gradient, x)
    return _gelu_backward(x, gradient)


_gelu.register_autograd(_backward, setup_context=_keep_input)
