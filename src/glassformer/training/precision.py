"""The numbers a step computes in: float32, or half of it where that is safe."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from glassformer.errors import ConfigError

Precision = Literal["fp32", "bf16", "fp16"]
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def computing(precision: Precision, device: torch.device) -> AbstractContextManager:
    """A context in which matrices are multiplied in this precision; weights stay in float32."""
    if precision == "fp32":
        return nullcontext()
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise ConfigError(
            "compute.precision 'bf16' must have a graphics card that knows bfloat16; "
            f"{torch.cuda.get_device_name()} does not. Use fp16 or fp32."
        )
    return torch.autocast(device.type, dtype=_DTYPES[precision])


def gradient_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler:
    """Keeps float16 gradients from vanishing; for the others it does nothing."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
