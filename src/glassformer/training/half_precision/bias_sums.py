"""Biases whose gradients are summed on the way, for training in half precision on a GPU.

The gradient of a bias is the sum, over all tokens, of the gradient behind it. Summed by itself, it
reads from memory once more what another kernel has just written. Two kernels that write such
gradients sum them, too: the derivative of GELU, and the one that joins those of q, k and v.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.functional.triton_support import triton_refusal
from glassformer.training.half_precision.conditions import is_differentiated_again, learns_plainly

_ROWS = 128  # that a program sums
# The tiles of the kernels: of 60 that were tried on an H200, with rows of 3,072 numbers, the
# fastest.
_TILES: dict[str, dict[str, Any]] = {
    "biased_gelu_kernel": {"ROWS": 32, "COLUMNS": 128, "num_warps": 4},
    "biased_gelu_backward_kernel": {
        "ROWS": _ROWS,
        "STEP": 32,
        "COLUMNS": 64,
        "STAGES": 3,
        "num_warps": 4,
    },
    "join_kernel": {"ROWS": _ROWS, "COLUMNS": 64, "num_warps": 8},
}


def can_sum_on_the_way(layer: nn.Module, x: Tensor) -> bool:
    """Whether a layer is a plain biased product that learns in half precision on a GPU."""
    return type(layer) is nn.Linear and layer.bias is not None and learns_plainly(layer, x)


def biased_gelu(x: Float[Tensor, "*B C"], bias: Float[Tensor, " C"]) -> Float[Tensor, "*B C"]:
    """GELU(x + bias), rounded once.

    >>> biased_gelu(torch.zeros(2, 3), torch.ones(3))[0]
    tensor([0.8413, 0.8413, 0.8413])
    """
    return _biased_gelu(x.flatten(0, -2), bias).view(x.shape)


def project_heads(
    x: Float[Tensor, "B L C"],
    weight: Float[Tensor, "W C"],
    bias: Float[Tensor, " W"],
    counts: Sequence[int],
) -> tuple[Float[Tensor, "B L _ D"], ...]:
    """The heads of x · weightᵀ + bias, divided into groups of so many.

    >>> q, k, v = project_heads(torch.ones(1, 2, 3), torch.ones(8, 3), torch.zeros(8), (2, 1, 1))
    >>> q.shape, v.shape
    (torch.Size([1, 2, 2, 2]), torch.Size([1, 2, 1, 2]))
    """
    heads = F.linear(x, weight, bias.detach()).unflatten(-1, (sum(counts), -1))
    return _Groups.apply(heads, bias, tuple(counts))


class _Groups(torch.autograd.Function):
    """heads.split(counts, 2); backward, gradients are joined, and summed for the bias."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, heads: Tensor, bias: Tensor, counts: tuple[int, ...]
    ) -> tuple[Tensor, ...]:
        ctx.dtype = bias.dtype
        return heads.split(counts, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        join = _join_by_torch if is_differentiated_again() else _join_heads
        joined, partial = join(list(gradients))
        return joined, partial.sum(0).to(ctx.dtype), None


@torch.library.custom_op("glassformer::biased_gelu", mutates_args=())
def _biased_gelu(x: Tensor, bias: Tensor) -> Tensor:
    if triton_refusal(x.device):
        return F.gelu(x.float() + bias.float()).to(x.dtype)
    x = x.contiguous()
    out = torch.empty_like(x)
    _launch("biased_gelu_kernel", x.shape, x, bias.contiguous(), out, *x.shape)
    return out


@torch.library.custom_op("glassformer::biased_gelu_backward", mutates_args=())
def _biased_gelu_backward(x: Tensor, bias: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of x, and its sums over each block of rows."""
    if triton_refusal(x.device):
        return _differentiate_by_torch(x, bias, gradient)
    operands = x.contiguous(), bias.contiguous(), gradient.contiguous()
    out, partial = _make_results(x, x.shape)
    _launch("biased_gelu_backward_kernel", x.shape, *operands, out, partial, *x.shape)
    return out, partial


@torch.library.custom_op(
    "glassformer::join_heads", mutates_args=(), tags=(torch.Tag.flexible_layout,)
)
def _join_heads(groups: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Heads of several groups as one, and the sums of their columns over each block of rows."""
    first = groups[0]
    B, L, _, D = first.shape
    if triton_refusal(first.device):
        return _join_by_torch(groups)
    width = sum(each.shape[2] for each in groups) * D
    joined, partial = _make_results(first, (B * L, width))
    column = 0
    for each in groups:
        shape = B * L, each.shape[2] * D
        to = joined[:, column:], partial[:, column:]
        _launch("join_kernel", shape, each, *to, *shape, L, width, *each.stride(), D=D)
        column += shape[1]
    return joined.view(B, L, -1, D), partial


def _launch(name: str, shape: Sequence[int], *arguments: Any, **constants: int) -> None:
    """Run a kernel on all tiles of a matrix of that shape."""
    from glassformer.training.half_precision import bias_sum_kernels

    tile = _TILES[name]
    grid = -(-shape[1] // tile["COLUMNS"]), -(-shape[0] // tile["ROWS"])
    if all(grid):
        with torch.cuda.device_of(arguments[0]):
            getattr(bias_sum_kernels, name)[grid](*arguments, **constants, **tile)


def _make_results(like: Tensor, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    n_rows, n_columns = shape
    sums = like.new_empty((-(-n_rows // _ROWS), n_columns), dtype=torch.float32)
    return like.new_empty((n_rows, n_columns)), sums


def _differentiate_by_torch(x: Tensor, bias: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    exact = torch.ops.aten.gelu_backward(gradient.float(), x.float() + bias.float())
    return exact.to(x.dtype), _sum_blocks(exact)


def _join_by_torch(groups: list[Tensor]) -> tuple[Tensor, Tensor]:
    joined = torch.cat(groups, 2)
    return joined, _sum_blocks(joined.float().flatten(2).flatten(0, 1))


def _sum_blocks(rows: Tensor) -> Tensor:
    return torch.stack([block.sum(0) for block in rows.split(_ROWS)])


@_biased_gelu.register_fake
def _(x: Tensor, bias: Tensor) -> Tensor:
    del bias
    return x.new_empty(x.shape)


@_biased_gelu_backward.register_fake
def _(x: Tensor, bias: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    del bias, gradient
    return _make_results(x, x.shape)


@_join_heads.register_fake
def _(groups: list[Tensor]) -> tuple[Tensor, Tensor]:
    B, L, _, D = groups[0].shape
    n_heads = sum(each.shape[2] for each in groups)
    joined, partial = _make_results(groups[0], (B * L, n_heads * D))
    return joined.view(B, L, n_heads, D), partial


def _keep_inputs(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    del output
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
    x, bias = ctx.saved_tensors
    work = _differentiate_by_torch if is_differentiated_again() else _biased_gelu_backward
    d_x, partial = work(x, bias, gradient)
    return d_x, partial.sum(0).to(bias.dtype)


_biased_gelu.register_autograd(_backward, setup_context=_keep_inputs)
