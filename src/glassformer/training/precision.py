"""Mixed precision and kernels: how a GPU computes what the model asks for.

Weights are in float32, matrix products in half precision where that is safe.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import nn

from glassformer.errors import ConfigError
from glassformer.models.stack import Stack

Precision = Literal["fp32", "bf16", "fp16", "fp8"]
# Beside the products of float8.py, 8-bit training computes in bfloat16.
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager:
    """A context that multiplies matrices in this precision; weights stay in float32."""
    if precision == "fp32":
        return nullcontext()
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise ConfigError(
            "compute.precision 'bf16' needs a GPU with bfloat16 support; "
            f"{torch.cuda.get_device_name()} has none. Use fp16 or fp32."
        )
    return torch.autocast(device.type, dtype=_DTYPES[precision])


def halve_residual(model: nn.Module) -> None:
    """Let the residual stream have 16 bits under autocast: half the bytes between products.

    Norms still compute in float32. Sums of the stream and of its gradients are rounded after each
    block, which is what models do that are trained in bfloat16 throughout.
    """
    for module in model.modules():
        if isinstance(module, Stack):
            module.residual_is_half = True


def attention_kernels(device: torch.device, *, fixed_shape: bool) -> AbstractContextManager:
    """A context in which attention uses cuDNN's kernels where these are fastest: from Hopper on.

    cuDNN prepares a plan for each shape of batch, so that batches must have few. What cuDNN cannot
    compute (float32, some masks) goes to PyTorch's own kernels.
    """
    if not fixed_shape or device.type != "cuda" or torch.version.hip is not None:
        return nullcontext()
    if torch.cuda.get_device_capability(device) < (9, 0):
        return nullcontext()
    # Imported here: the module loads torch's compiler.
    from torch.nn.attention import SDPBackend, sdpa_kernel

    order = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
    return sdpa_kernel([getattr(SDPBackend, name) for name in order], set_priority=True)


def gradient_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler:
    """Loss scaling, which keeps float16 gradients from underflowing; disabled otherwise."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
