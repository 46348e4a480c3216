"""Where Triton kernels of ours can run."""

import os
from functools import cache
from importlib.util import find_spec

import torch

from glassformer.installation import install_command


@cache
def triton_refusal(device: torch.device) -> str | None:
    """Why no kernel of ours can run on this device; None if it can."""
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"the kernels run on CUDA, not on {device.type}"
    if find_spec("triton") is None:
        return f"triton is not installed: {install_command('gpu')}"
    if device.type == "cuda":
        if torch.version.hip is not None:
            return "the kernels are untested on ROCm"
        if torch.cuda.get_device_capability(device) < (8, 0):
            return "the kernels need a GPU of compute capability 8.0 or more"
    return None
