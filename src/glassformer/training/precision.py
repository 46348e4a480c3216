"""Mixed precision: float32 weights, and matrix products in half precision where that is safe."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from glassformer.errors import ConfigError

Precision = Literal["fp32", "bf16", "fp16"]
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


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


def gradient_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler:
    """Loss scaling, which keeps float16 gradients from underflowing; disabled otherwise."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
