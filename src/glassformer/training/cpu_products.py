"""Matrix products of training on processors that MKL does not make the most of.

PyTorch multiplies float32 matrices on x86 by MKL, which on an AMD Zen 5 is no faster than AVX2
allows. oneDNN, which PyTorch brings along, is more than twice as fast there: it takes AVX-512 on
any chip that has it. Which of the two multiplies follows from the processor alone, so that a run
computes the same whenever it is resumed.

    forward    y  = x · wᵀ + b
    backward   dx = dy · w,   dw = dyᵀ · x,   db = Σ dy
"""

import platform
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from glassformer.models.learning_forward import replace_while_learning

# Below these, calling oneDNN takes longer than it saves.
_FEW = 1 << 24  # multiplications
_FEW_ROWS = 64


@cache
def prefers_onednn() -> bool:
    """Whether oneDNN multiplies matrices of float32 faster than MKL on this processor."""
    both = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    return both and torch.backends.cpu.get_cpu_capability() == "AVX512" and not _is_from_intel()


def _is_from_intel() -> bool:
    with suppress(OSError):
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return "AuthenticAMD" not in platform.processor()  # as Windows describes it


def takes_product(x: Tensor, weight: Tensor) -> bool:
    """Whether x · weightᵀ is one for oneDNN: float32, large, and seen by nobody on its way."""
    return (
        x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.ndim >= 2
        and x.numel() * len(weight) >= _FEW
        and x[..., 0].numel() >= _FEW_ROWS
        and type(x) is Tensor
        and type(weight) in (Tensor, nn.Parameter)
        and prefers_onednn()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()
    )


def replace_products(model: nn.Module) -> None:
    """Let the linear layers of a model multiply so while it learns, if that is faster here."""
    if prefers_onednn():
        for layer in model.modules():
            if type(layer) is nn.Linear and "forward" not in vars(layer):
                replace_while_learning(layer, partial(_compute_layer, layer))


def _compute_layer(layer: nn.Linear, x: Tensor) -> Tensor:
    # What is measured, sampled or saved does not depend on how a model is trained.
    if layer.training and torch.is_grad_enabled() and takes_product(x, layer.weight):
        return onednn_linear(x, layer.weight, layer.bias)
    return F.linear(x, layer.weight, layer.bias)


def onednn_linear(
    x: Float[Tensor, "... C"], weight: Float[Tensor, "F C"], bias: Float[Tensor, " F"] | None = None
) -> Float[Tensor, "... F"]:
    """`F.linear` of float32 by oneDNN, which has no second derivative.

    >>> onednn_linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))[0]
    tensor([4., 4., 4., 4.])
    """
    return _Linear.apply(x, weight, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return multiply(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]  (the decorator's signature)
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        dx = multiply(gradients[0], weight.t()) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:  # frozen, as below an adapter
            return dx, None, gradients[0].flatten(0, -2).sum(0) if ctx.needs_input_grad[2] else None
        g, rows = gradients[0].flatten(0, -2), x.flatten(0, -2)
        d_weight, d_bias = multiply_rows(g, rows, weight, sums=ctx.has_bias)
        return dx, d_weight, d_bias


def multiply(
    x: Float[Tensor, "... C"], weight: Float[Tensor, "F C"], bias: Float[Tensor, " F"] | None = None
) -> Float[Tensor, "... F"]:
    """x · wᵀ + b."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def multiply_rows(
    g: Float[Tensor, "N F"],
    x: Float[Tensor, "N C"],
    weight: Float[Tensor, "F C"],
    *,
    sums: bool = False,
) -> tuple[Float[Tensor, "F C"], Float[Tensor, " F"] | None]:
    """gᵀ · x, in the layout of the weight, and with `sums` Σ g over the rows."""
    # oneDNN's own layout is a plain copy here, in a hundredth of the product's time.
    g, x = g.to_mkldnn(), x.to_mkldnn()
    d_weight, d_bias = torch.ops.aten.mkldnn_linear_backward_weights(g, x, weight, sums)
    return _as_dense(d_weight), _as_dense(d_bias) if sums else None


def _as_dense(x: Tensor) -> Tensor:
    return x.to_dense() if x.is_mkldnn else x
