"""Tensors serialized for the page: little-endian numbers in base64.

The rows of q, k and v are quantized to 16-bit integers with one step size per row, so that no value
is off by more than half a step, 1.6e-5 of the largest in its row.
"""

import base64
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

_STEPS = 32767


def pack_rows(operand: Float[Tensor, "B H L D"]) -> dict[str, str]:
    """Row vectors in 16 bits, and the step size of each row."""
    whole, steps = _quantize(operand)
    return {"int16": _as_text(whole), "steps": _as_text(steps)}


def round_as_packed(operand: Float[Tensor, "B H L D"]) -> Float[Tensor, "B H L D"]:
    """The operand with the rounding errors that it has in the page."""
    whole, steps = _quantize(operand)
    return (whole.double() * steps.double()[..., None]).float().to(operand.device)


def _quantize(operand: Float[Tensor, "B H L D"]) -> tuple[Tensor, Float[Tensor, "B H L"]]:
    """value = integer · step, where a step is largest / 32767.

    A row with a value that is not finite has the step NaN, so that this remains visible.
    """
    values = operand.detach().cpu().double()
    steps = (values.abs().amax(-1) / _STEPS).float()
    steps = steps.masked_fill(~steps.isfinite(), torch.nan)
    whole = (values / steps.double().where(steps > 0, 1.0)[..., None]).round()
    return whole.nan_to_num(0.0).clamp(-_STEPS, _STEPS).short(), steps


def pack_tensor(tensor: Tensor) -> dict[str, Any]:
    """The content of a mask or bias: bits, or float32."""
    if tensor.dtype == torch.bool:
        return {"shape": list(tensor.shape), "bits": _as_text(_bits(tensor))}
    return {"shape": list(tensor.shape), "float32": _as_text(tensor.detach().cpu().float())}


def _bits(tensor: Tensor) -> Tensor:
    import numpy as np

    return torch.from_numpy(np.packbits(tensor.cpu().flatten().numpy()))


def _as_text(tensor: Tensor) -> str:
    array = tensor.contiguous().numpy()
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")
