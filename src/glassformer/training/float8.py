"""Training in 8-bit floating point, for GPUs that multiply it (Micikevicius et al. 2022).

    forward    y  = x · wᵀ        e4m3 · e4m3    4 bits of exponent, 3 of mantissa: precision
    backward   dx = dy · w        e5m2 · e4m3    5 and 2: gradients need range
               dw = dyᵀ · x       e5m2 · e4m3

Each operand has one scale (float8_matrices.py). Products are summed in more bits and rounded to
bfloat16, those for weights to float32. The output layer multiplies so, too (float8_loss.py);
weights, embeddings, norms and attention stay as they are in bf16 training.
"""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.layers import Block, FeedForward
from glassformer.models.learning_forward import replace_while_learning
from glassformer.training.float8_matrices import (
    MULTIPLE,
    multiply,
    round_gelu,
    round_gelu_gradient,
    round_gradient,
    round_matrix,
)


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
    """Let the linear layers of all blocks compute in 8 bits where their sizes allow it."""
    for block in (part for part in model.modules() if isinstance(part, Block)):
        for layer in block.modules():
            if isinstance(layer, FeedForward) and _is_fusible(layer):
                replace_while_learning(layer, partial(_compute_feed_forward, layer))
            if isinstance(layer, nn.Linear) and _has_fitting_size(layer):
                replace_while_learning(layer, partial(_compute_layer, layer))


def _has_fitting_size(layer: nn.Module) -> bool:
    return type(layer) is nn.Linear and not any(n % MULTIPLE for n in layer.weight.shape)


def _is_fusible(layer: FeedForward) -> bool:
    """Whether GELU lies between two products, with nothing else between them."""
    is_plain = layer.activation == "gelu" and not layer.gated and not layer.dropout
    return is_plain and _has_fitting_size(layer.up) and _has_fitting_size(layer.down)


def _learns(layer: nn.Module, x: Tensor) -> bool:
    # What is measured, sampled or saved does not depend on the precision of training.
    n = x[..., 0].numel()
    return layer.training and torch.is_grad_enabled() and n > 0 and not n % MULTIPLE


def _compute_layer(layer: nn.Linear, x: Tensor) -> Tensor:
    if _learns(layer, x):
        return float8_linear(x, layer.weight, layer.bias)
    return F.linear(x, layer.weight, layer.bias)


def _compute_feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    if _learns(layer, x):
        return float8_feed_forward(
            x, layer.up.weight, layer.up.bias, layer.down.weight, layer.down.bias
        )
    return FeedForward.forward(layer, x)


def float8_linear(
    x: Float[Tensor, "... C"], weight: Float[Tensor, "F C"], bias: Float[Tensor, " F"] | None = None
) -> Float[Tensor, "... F"]:
    """`F.linear` with operands rounded to 8 bits; the result is in bfloat16.

    >>> x, weight = torch.ones(2, 16, 16), torch.eye(16)
    >>> float8_linear(x, weight).dtype, float8_linear(x, weight).sum()
    (torch.bfloat16, tensor(512., dtype=torch.bfloat16))
    """
    return _apply(_Linear, x, weight, bias)


def float8_feed_forward(
    x: Float[Tensor, "... C"],
    up: Float[Tensor, "F C"],
    up_bias: Float[Tensor, " F"] | None,
    down: Float[Tensor, "C F"],
    down_bias: Float[Tensor, " C"] | None,
) -> Float[Tensor, "... C"]:
    """down · GELU(up · x), the same way: what is between the products never has 16 bits.

    >>> x, weight = torch.ones(2, 16, 16), torch.eye(16)
    >>> float8_feed_forward(x, weight, None, weight, None)[0, 0, 0]  # GELU(1) is 0.841
    tensor(0.8125, dtype=torch.bfloat16)
    """
    return _apply(_FeedForward, x, up, up_bias, down, down_bias)


def _apply(function: Any, x: Tensor, *parameters: Tensor | None) -> Tensor:
    with torch.autocast(x.device.type, enabled=False):
        rows = x.to(torch.bfloat16).flatten(0, -2)  # (B, L, C) → (BL, C)
        return function.apply(rows, *parameters).unflatten(0, x.shape[:-1])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x8, w8 = round_matrix(x), round_matrix(weight)
        ctx.save_for_backward(x8.columns, x8.scale, w8.columns, w8.scale)
        ctx.has_bias = bias is not None
        return multiply(x8.rows, x8.scale, w8.rows, w8.scale, bias=bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, x_scale, weight, w_scale = ctx.saved_tensors
        g, d_bias = round_gradient(gradients[0], sums=ctx.has_bias)
        dx = multiply(g.rows, g.scale, weight, w_scale)
        return dx, _weight_gradient(g.columns, g.scale, x, x_scale), d_bias


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        x: Tensor,
        up: Tensor,
        up_bias: Tensor | None,
        down: Tensor,
        down_bias: Tensor | None,
    ) -> Tensor:
        x8, up8, down8 = round_matrix(x), round_matrix(up), round_matrix(down)
        before = multiply(x8.rows, x8.scale, up8.rows, up8.scale, bias=up_bias)
        hidden = round_gelu(before)
        columns = [(each.columns, each.scale) for each in (x8, up8, hidden, down8)]
        ctx.save_for_backward(before, *(tensor for pair in columns for tensor in pair))
        ctx.biased = up_bias is not None, down_bias is not None
        return multiply(hidden.rows, hidden.scale, down8.rows, down8.scale, bias=down_bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        before, x, x_scale, up, up_scale, hidden, h_scale, down, down_scale = ctx.saved_tensors
        g, d_down_bias = round_gradient(gradients[0], sums=ctx.biased[1])
        d_down = _weight_gradient(g.columns, g.scale, hidden, h_scale)
        d_hidden = multiply(g.rows, g.scale, down, down_scale)
        g, d_up_bias = round_gelu_gradient(before, d_hidden, sums=ctx.biased[0])
        dx = multiply(g.rows, g.scale, up, up_scale)
        d_up = _weight_gradient(g.columns, g.scale, x, x_scale)
        return dx, d_up, d_up_bias, d_down, d_down_bias


def _weight_gradient(g: Tensor, g_scale: Tensor, x: Tensor, x_scale: Tensor) -> Tensor:
    return multiply(g, g_scale, x, x_scale, dtype=torch.float32, fast=False)
