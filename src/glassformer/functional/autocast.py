"""One rule for `torch.autocast`, whichever backend runs.

Under autocast, q, k, v and the tensors of a bias are cast as `F.scaled_dot_product_attention`
casts them; the computation then uses these dtypes. float64 stays float64. A bias that is a formula
(ALiBi) is not rounded, and a finite number never becomes infinite.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from glassformer.functional.biases import Bias, as_bias


def autocast_dtype(tensor: Tensor) -> torch.dtype | None:
    """The autocast dtype on this tensor's device; None if autocast is off."""
    device = tensor.device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return None
    return torch.get_autocast_dtype(device)


def without_autocast(tensor: Tensor) -> AbstractContextManager[Any]:
    """Disable autocast on this tensor's device."""
    if autocast_dtype(tensor) is None:
        return nullcontext()
    return torch.autocast(tensor.device.type, enabled=False)


def cast_operands(
    q: Tensor, k: Tensor, v: Tensor, bias: Bias | Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Bias | None]:
    """Cast the operands as autocast would; unchanged if it is off."""
    bias, dtype = None if bias is None else as_bias(bias), autocast_dtype(q)
    if dtype is None:
        return q, k, v, bias
    if bias is not None and bias.is_data:
        bias = bias.with_tensors(tuple(_cast_finite(x, dtype) for x in bias.tensors()))
    q, k, v = (x.to(dtype) if _is_eligible(x) else x for x in (q, k, v))
    return q, k, v, bias


def _is_eligible(x: Tensor) -> bool:
    return x.is_floating_point() and x.dtype != torch.float64


def _cast_finite(x: Tensor, dtype: torch.dtype) -> Tensor:
    # −3.4e38, the usual mask value in float32, would become −∞, which means masked.
    if not _is_eligible(x):
        return x
    ends = torch.finfo(dtype)
    return torch.where(x.isfinite(), x.clamp(ends.min, ends.max), x).to(dtype)
