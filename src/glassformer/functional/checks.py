"""Checks of the inputs of attention, done once, before any backend sees them."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.errors import ConfigError, DtypeError, ShapeError
from glassformer.functional.biases import Bias, as_bias
from glassformer.functional.cells import Extent
from glassformer.functional.masks import Mask, as_mask

_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class Scoring(NamedTuple):
    """How scores are computed from q and k: checked settings, with defaults filled in."""

    extent: Extent
    mask: Mask | None
    bias: Bias | None
    scale: float
    softcap: float | None

    def options(self) -> dict[str, Any]:
        """The settings as keyword arguments of the functions on q and k."""
        return {
            "mask": self.mask,
            "bias": self.bias,
            "scale": self.scale,
            "softcap": self.softcap,
        }


def check_scoring(
    q: Tensor,
    k: Tensor,
    *,
    mask: Mask | Tensor | None,
    bias: Bias | Tensor | None,
    scale: float | None,
    softcap: float | None,
) -> Scoring:
    """Check everything that determines the weights."""
    extent = _check_pair(q, k, "k")
    if scale is not None and not -math.inf < scale < math.inf:
        raise ConfigError(
            f"scale must be a finite number; got {scale}. Leave it out for 1/√head_dim."
        )
    if softcap is not None and not 0 < softcap < math.inf:
        raise ConfigError(f"softcap must be greater than 0; got {softcap}. Leave it out for none.")
    if mask is not None:
        mask = as_mask(mask).fit_to(extent, q.device)
    if bias is not None:
        bias = as_bias(bias).fit_to(extent, q.device)
    # 1/√head_dim keeps the variance of the scores at 1 (Vaswani et al. 2017, §3.2.1).
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    return Scoring(extent, mask, bias, factor, softcap)


def check_values(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> None:
    """Check v against q and k, and the dropout probability."""
    _check_pair(q, v, "v", width=False)
    if k.shape[1:3] != v.shape[1:3]:
        raise ShapeError(
            f"k and v must have the same n_kv_heads and length; got k {tuple(k.shape)} and "
            f"v {tuple(v.shape)}. Only their last dimension may differ."
        )
    if not 0 <= dropout < 1:
        raise ConfigError(f"dropout must be at least 0 and less than 1; got {dropout}.")


def _check_pair(q: Tensor, other: Tensor, name: str, *, width: bool = True) -> Extent:
    q_shape, shape = q.shape, other.shape
    if len(q_shape) != 4 or len(shape) != 4:
        raise ShapeError(
            f"q and {name} must have rank 4, (batch, heads, length, width); got q {tuple(q_shape)} "
            f"and {name} {tuple(shape)}. A single head is x[:, None]."
        )
    B, H, L, D = q_shape
    n, K, S, other_width = shape
    if n != B:
        raise ShapeError(
            f"q and {name} must have the same batch size; got q {tuple(q_shape)} and {name} "
            f"{tuple(shape)}."
        )
    if width and (other_width != D or not D):
        raise ShapeError(
            f"q and {name} must have the same head_dim of at least 1, since they are multiplied; "
            f"got head_dim={D} for q and {other_width} for {name}."
        )
    if not K or not H or H % K:
        fitting = ", ".join(str(i) for i in range(1, H + 1) if H % i == 0)
        raise ShapeError(
            f"n_heads must be a multiple of n_kv_heads; got n_heads={H}, n_kv_heads={K}. "
            f"Use {fitting or 'at least one head'}."
        )
    if q.dtype is not other.dtype or q.dtype not in _DTYPES:
        raise DtypeError(
            f"q and {name} must have the same dtype, one of float64, float32, bfloat16, float16; "
            f"got q {q.dtype} and {name} {other.dtype}. Use {name}.to(q.dtype)."
        )
    if q.device != other.device:
        raise DtypeError(
            f"q and {name} must be on the same device; got q on {q.device} and {name} on "
            f"{other.device}. Use {name}.to(q.device)."
        )
    return Extent(B, H, L, S)
