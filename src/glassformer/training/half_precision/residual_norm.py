"""The LayerNorm of a residual stream that goes on beside it, for training in half precision.

    x ─┬────────────────────── x        backward, one kernel reads d_stream, d_y and x, and writes
       └─ LayerNorm ── y                d_x, with the sums for weight and bias on the way

Forward it is PyTorch's LayerNorm, rounded at once to what the products after it read. Left to
autograd, the two gradients of x are added by another pass over memory, or, where a compiler joins
them, the sums for weight and bias take half as long again as the pass itself.
"""

from typing import Any, TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.functional.autocast import autocast_dtype
from glassformer.functional.triton_support import triton_refusal
from glassformer.training.half_precision.conditions import is_differentiated_again, learns_plainly

_ROWS = 64  # that a program sums: of 16 to 256, the fastest on an H200 with rows of 768 numbers
_WIDEST = 8192  # numbers of a row: they are all in the registers of a program
_MOST_AHEAD = 90_000  # bytes of shared memory that every GPU with these kernels has


def can_go_beside(norm: nn.Module, x: Tensor) -> TypeGuard[nn.LayerNorm]:
    """Whether a module is a plain LayerNorm that learns in half precision on a GPU."""
    if type(norm) is not nn.LayerNorm or norm.weight is None or norm.bias is None:
        return False
    has_room = norm.normalized_shape == x.shape[-1:] and x.shape[-1] <= _WIDEST
    return has_room and learns_plainly(norm, x)


def residual_norm(
    x: Float[Tensor, "*B C"], weight: Float[Tensor, " C"], bias: Float[Tensor, " C"], eps: float
) -> tuple[Float[Tensor, "*B C"], Float[Tensor, "*B C"]]:
    """x itself and its LayerNorm, which under autocast has the dtype of that.

    >>> x, y = residual_norm(torch.tensor([[1.0, 3.0]]), torch.ones(2), torch.zeros(2), 0.0)
    >>> x, y
    (tensor([[1., 3.]]), tensor([[-1.,  1.]]))
    """
    return _ResidualNorm.apply(x, weight, bias, eps, autocast_dtype(x) or x.dtype)


class _ResidualNorm(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        y, mean, rstd = torch.native_layer_norm(x, x.shape[-1:], weight, bias, eps)
        ctx.save_for_backward(x, mean, rstd, weight)
        ctx.eps, ctx.bias_dtype = eps, bias.dtype
        return x.view_as(x), y.to(dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_stream, d_y = gradients
        x, mean, rstd, weight = ctx.saved_tensors
        if is_differentiated_again():  # mean and rstd, too
            spread, mean = torch.var_mean(x.float(), -1, correction=0, keepdim=True)
            rstd = torch.rsqrt(spread + ctx.eps)
            d_x, partial = _by_torch(d_stream, d_y, x, mean, rstd, weight)
        else:
            d_x, partial = _residual_norm_backward(d_stream, d_y, x, mean, rstd, weight)
        d_weight, d_bias = partial.sum(0).unbind(0)
        return d_x, d_weight.to(weight.dtype), d_bias.to(ctx.bias_dtype), None, None


@torch.library.custom_op("glassformer::residual_norm_backward", mutates_args=())
def _residual_norm_backward(
    d_stream: Tensor, d_y: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient of x, and for each block of rows the sums of d_y z and of d_y."""
    if triton_refusal(x.device):
        return _by_torch(d_stream, d_y, x, mean, rstd, weight)
    d_x, partial = _make_results(x)
    if x.numel():
        from glassformer.training.half_precision.residual_norm_kernels import (
            residual_norm_backward_kernel,
        )

        width = x.shape[-1]
        read = [each.contiguous() for each in (d_stream, d_y, x, mean, rstd, weight)]
        operands: list[Any] = [*read, d_x, partial, x.numel() // width, width]
        tile = _choose_tile(width, sum(each.element_size() for each in read[:3]))
        with torch.cuda.device_of(x):
            residual_norm_backward_kernel[(len(partial),)](*operands, **tile)
    return d_x, partial


def _choose_tile(width: int, n_bytes: int) -> dict[str, Any]:
    """For rows of so many numbers, that are read as so many bytes each."""
    columns = 1 << (width - 1).bit_length()
    step = 1 if columns > _WIDEST // 2 else 2
    stages = 3 if 3 * step * columns * n_bytes <= _MOST_AHEAD else 1
    warps = max(1, step * columns // 512)  # each thread has 16 numbers
    return {"ROWS": _ROWS, "STEP": step, "COLUMNS": columns, "STAGES": stages, "num_warps": warps}


def _by_torch(
    d_stream: Tensor, d_y: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    above, z = d_y.float(), (x.float() - mean) * rstd
    g = above * weight
    change = rstd * (g - g.mean(-1, keepdim=True) - z * (g * z).mean(-1, keepdim=True))
    shares = torch.stack([above * z, above], -2).flatten(0, -3)
    partial = torch.stack([block.sum(0) for block in shares.split(_ROWS)])
    return (d_stream.float() + change).to(x.dtype), partial


def _make_results(x: Tensor) -> tuple[Tensor, Tensor]:
    width = x.shape[-1]
    n_blocks = -(-(x.numel() // width) // _ROWS)
    partial = x.new_empty((n_blocks, 2, width), dtype=torch.float32)
    return torch.empty_like(x, memory_format=torch.contiguous_format), partial


@_residual_norm_backward.register_fake
def _(
    d_stream: Tensor, d_y: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    del d_stream, d_y, mean, rstd, weight
    return _make_results(x)
