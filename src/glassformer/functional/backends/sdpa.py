"""Attention by `F.scaled_dot_product_attention`, with a flag instead of a mask where possible.

Its causal flag is aligned top-left, ours bottom-right: they agree only for L = S.

    L = S          L = 1        L > S                     L < S
    is_causal      no mask      zeros for the first       bottom-right kernel on CUDA,
                                L − S, then is_causal     else a dense mask
"""

import math
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.cells import Extent, Tile
from glassformer.functional.checks import Scoring
from glassformer.functional.graph_capture import is_known_true, is_traced, needs_more_derivatives
from glassformer.functional.masks import Causal, Mask, derive, simplify

T = TypeVar("T")
_REGISTER = 16  # float32 lanes of the widest vector register that PyTorch uses (AVX-512)
_MOST_KEPT = 1 << 24  # cells of a dense mask that is kept, a byte each
_SHORT = 1 << 14  # cells: up to here, CPU gradients are slower in half precision


def refusal(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float) -> str | None:
    """Why this backend cannot compute this call; None if it can."""
    del k, v, dropout
    if scoring.softcap is not None:
        return "scaled_dot_product_attention has no soft-capping"
    if scoring.bias is not None and not scoring.bias.is_exact_in(q.dtype):
        return f"scaled_dot_product_attention would round this bias to {q.dtype}, the dtype of q"
    if needs_more_derivatives():
        return "PyTorch's fused kernels have no forward-mode and no second derivatives"
    return None


def form(q: Tensor, scoring: Scoring) -> str:
    """How the mask is passed to the kernel: as a flag, or as a "dense" tensor.

    "none", "is_causal", "tail" and "lower_right" are flags. "few" is also a tensor, which a flag
    could replace if the kernel did not lose NaN there.
    """
    return _form(q, scoring, _remaining_mask(scoring))


def _remaining_mask(scoring: Scoring) -> Mask | None:
    # Without an offset, Causal hides something as soon as there are two queries.
    mask = scoring.mask
    if isinstance(mask, Causal) and mask.offset is None and is_known_true(scoring.extent.L > 1):
        return mask
    return simplify(mask, scoring.extent)


def _form(q: Tensor, scoring: Scoring, mask: Mask | None) -> str:
    L, S = scoring.extent[2:]
    is_flag = mask is None or (isinstance(mask, Causal) and mask.offset is None)
    if scoring.bias is not None or not is_flag:
        return "dense"
    if q.device.type == "cpu" and not is_known_true(S >= _REGISTER):
        # With a flag, the kernel's maximum over keys ignores NaN beyond the last full vector
        # register, so that a row of NaN becomes zeros. With a dense mask it does not.
        return "few"
    if mask is None:
        return "none"
    if is_known_true(L == S):
        return "is_causal"
    if is_known_true(L > S):
        return "tail"
    has_kernel = q.is_cuda and q.dtype != torch.float64 and not is_traced(q)
    return "lower_right" if has_kernel else "dense"


def attend(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    scoring: Scoring,
    dropout: float = 0.0,
) -> Float[Tensor, "B H L E"]:
    """The weighted sum of the values, from PyTorch's fastest kernel for the case."""
    if _has_slow_gradients(q, k, v, scoring):
        return attend(q.float(), k.float(), v.float(), scoring, dropout).to(v.dtype)
    mask = _remaining_mask(scoring)
    how = _form(q, scoring, mask)
    q, scale = with_positive_scale(q, scoring.scale)
    D, E = q.shape[-1], v.shape[-1]
    if D != E:  # fused kernels need one width; zero padding changes no result
        q, k, v = (F.pad(x, (0, max(D, E) - x.shape[-1])) for x in (q, k, v))
    grouped = not is_known_true(
        q.shape[1] == k.shape[1]
    )  # torch 2.11 compiles != of symbols wrongly
    if grouped and q.is_cuda and (how in ("dense", "lower_right") or q.dtype == torch.float32):
        # Only the flash kernel supports grouped heads; for the others, copies cost less than the
        # unfused fallback.
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        grouped = False
    options = {"dropout_p": dropout, "scale": scale, "enable_gqa": grouped}
    if how == "few":
        how, options["attn_mask"] = "none", additive_mask(q, scoring)
    if how == "tail":
        first = scoring.extent.L - scoring.extent.S
        seen = F.scaled_dot_product_attention(q[:, :, first:], k, v, is_causal=True, **options)
        out = F.pad(seen, (0, 0, first, 0))
    elif how in ("none", "is_causal"):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=how == "is_causal", **options)
    elif how == "lower_right":
        bias = _lower_right(scoring.extent)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, **options)
    elif q.is_cuda:
        filled, empty = _once(q, scoring, lambda: _fill_empty_rows(_dense_mask(q, scoring, mask)))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=filled, **options)
        out = out.masked_fill(empty, 0.0)
    else:
        dense = _once(q, scoring, lambda: _dense_mask(q, scoring, mask))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=dense, **options)
    return out if D == E else out[..., :E]


def _once(q: Tensor, scoring: Scoring, make: Callable[[], T]) -> T:
    """What is made of the mask alone is the same for all layers."""
    mask, extent = scoring.mask, scoring.extent
    is_small = is_known_true(extent.B * extent.L * extent.S <= _MOST_KEPT)
    if mask is None or scoring.bias is not None or is_traced(q) or not is_small:
        return make()
    return derive(mask, "dense", extent, q.device, make)


def with_positive_scale(q: Tensor, scale: float) -> tuple[Tensor, float]:
    """Queries and a positive scale that give the same scores."""
    # The kernels multiply by the scale after writing −∞ for the causal flag, and flash kernels
    # take the maximum before scaling: both are wrong unless the scale is positive.
    if scale > 0:
        return q, scale
    return (-q, -scale) if scale < 0 else (q * 0.0, 1.0)


def _has_slow_gradients(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring) -> bool:
    learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    half = q.dtype in (torch.bfloat16, torch.float16)
    return (
        learns
        and half
        and q.device.type == "cpu"
        and is_known_true(scoring.extent.L * scoring.extent.S <= _SHORT)
    )


def _lower_right(extent: Extent) -> Tensor:
    # Imported here: the module loads torch's compiler.
    from torch.nn.attention.bias import causal_lower_right

    return causal_lower_right(extent.L, extent.S)


def _fill_empty_rows(mask: Tensor) -> tuple[Tensor, Tensor]:
    """A dense mask or bias whose empty rows allow everything, and which rows these are.

    On CUDA in half precision, PyTorch's kernels do not return zeros for a row without keys.
    """
    hidden = ~mask if mask.dtype == torch.bool else mask.isneginf()
    empty = hidden.all(-1, keepdim=True)
    return mask | empty if mask.dtype == torch.bool else mask.masked_fill(empty, 0.0), empty


def additive_mask(q: Tensor, scoring: Scoring) -> Tensor:
    """Of "few": what a flag would say, as numbers to add; so a call asks least of the host."""
    L, S = scoring.extent[2:]
    if _remaining_mask(scoring) is None:
        return q.new_zeros(1, S)
    return q.new_full((L, S), -math.inf).triu(S - L + 1)


def _dense_mask(q: Tensor, scoring: Scoring, mask: Mask | None) -> Tensor:
    whole = Tile.whole(scoring.extent, q.device)
    allowed = None if mask is None else mask.tile(whole)
    if scoring.bias is not None:
        scores = scoring.bias.tile(whole).to(q.dtype)
        return _as_matrix(scores if allowed is None else scores.masked_fill(~allowed, -torch.inf))
    assert allowed is not None, "without mask and bias the form is not dense"
    return _as_matrix(allowed.expand(*allowed.shape[:-2], *scoring.extent[2:]))


def _as_matrix(tile: Tensor) -> Tensor:
    """A mask shared by all sequences and heads as (L, S).

    With leading dimensions of 1, an export would fix the length, because PyTorch pads such masks
    for its CUDA kernels.
    """
    is_shared = (
        tile.ndim == 4 and is_known_true(tile.shape[0] == 1) and is_known_true(tile.shape[1] == 1)
    )
    return tile[0, 0] if is_shared else tile
