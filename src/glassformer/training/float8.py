"""Matrix products in 8-bit floating point, for GPUs that have them (Micikevicius et al. 2022).

    forward    y  = x · wᵀ        e4m3 · e4m3    4 bits of exponent, 3 of mantissa: precision
    backward   dx = dy · w        e5m2 · e4m3    5 and 2: gradients need range
               dw = dyᵀ · x       e5m2 · e4m3

Each operand has one scale, found anew at each product: its largest number becomes the largest that
the format holds. Products are summed in more bits and rounded to bfloat16. Weights,
embeddings, norms, attention and the output layer stay as they are in bf16 training.
"""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.layers import Block

_FORWARD, _BACKWARD = torch.float8_e4m3fn, torch.float8_e5m2
_MULTIPLE = 16  # the products need sizes that are multiples of this


def use_float8(model: nn.Module, device: torch.device) -> None:
    """Compute the linear layers of all blocks in 8 bits while the model learns."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 9):
        found = "a CPU" if device.type != "cuda" else torch.cuda.get_device_name(device)
        raise ConfigError(
            "compute.precision 'fp8' needs a GPU of compute capability 8.9 or more, such as an "
            f"H100; got {found}. Use bf16."
        )
    replace_products(model)


def replace_products(model: nn.Module) -> None:
    """Let the linear layers of all blocks compute by `float8_linear` where their sizes allow it."""
    for block in (part for part in model.modules() if isinstance(part, Block)):
        for layer in block.modules():
            if type(layer) is nn.Linear and not any(n % _MULTIPLE for n in layer.weight.shape):
                layer.forward = partial(_compute_layer, layer)  # type: ignore[method-assign]


def _compute_layer(layer: nn.Linear, x: Tensor) -> Tensor:
    # What is measured, sampled or saved does not depend on the precision of training.
    if layer.training and torch.is_grad_enabled() and not x[..., 0].numel() % _MULTIPLE:
        return float8_linear(x, layer.weight, layer.bias)
    return F.linear(x, layer.weight, layer.bias)


def float8_linear(
    x: Float[Tensor, "... C"], weight: Float[Tensor, "F C"], bias: Float[Tensor, " F"] | None = None
) -> Float[Tensor, "... F"]:
    """`F.linear` with operands rounded to 8 bits; the result is in bfloat16.

    >>> x, weight = torch.ones(2, 16, 16), torch.eye(16)
    >>> float8_linear(x, weight).dtype, float8_linear(x, weight).sum()
    (torch.bfloat16, tensor(512., dtype=torch.bfloat16))
    """
    with torch.autocast(x.device.type, enabled=False):
        rows = x.to(torch.bfloat16).flatten(0, -2)  # (B, L, C) → (BL, C)
        y = _Float8Product.apply(rows, weight.to(torch.bfloat16))
        y = y if bias is None else y + bias.to(y.dtype)
    return y.unflatten(0, x.shape[:-1])


class _Float8Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        x8, x_scale = _quantize(x, _FORWARD)
        w8, w_scale = _quantize(weight, _FORWARD)
        ctx.save_for_backward(x8, x_scale, w8, w_scale)
        return _multiply(x8, x_scale, w8.t(), w_scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        x8, x_scale, w8, w_scale = ctx.saved_tensors
        g8, g_scale = _quantize(gradients[0].contiguous(), _BACKWARD)
        # The hardware multiplies rows by columns: the other order is a copy of one byte a number.
        dx = _multiply(g8, g_scale, _as_columns(w8), w_scale)
        # This sum runs over all tokens: too long for the 14 bits of fast accumulation on Hopper.
        dw = _multiply(g8.t().contiguous(), g_scale, _as_columns(x8), x_scale, fast=False)
        return dx, dw


def _quantize(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """x as scale · numbers of 8 bits; the scale is 1 where all are 0."""
    most = torch.finfo(dtype).max
    largest = x.abs().amax().float()
    scale = torch.where(largest > 0, largest / most, 1.0)
    return (x.float() / scale).clamp(-most, most).to(dtype), scale


def _multiply(
    a: Tensor, a_scale: Tensor, b: Tensor, b_scale: Tensor, *, fast: bool = True
) -> Tensor:
    return torch._scaled_mm(  # pyright: ignore[reportPrivateImportUsage]
        a, b, scale_a=a_scale, scale_b=b_scale, out_dtype=torch.bfloat16, use_fast_accum=fast
    )


def _as_columns(x: Tensor) -> Tensor:
    return x.t().contiguous().t()
