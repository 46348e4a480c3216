"""Attention by `F.scaled_dot_product_attention`, with a flag wherever one will do for a mask.

Its own causal flag is aligned top-left and ours bottom-right: they agree only for L = S.

    L = S          L = 1        L > S                     L < S
    is_causal      no mask      zeros for the first       bottom-right kernel on CUDA,
                                L − S, then is_causal     else a dense mask
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.attention.cells import Extent, Tile
from glassformer.attention.checks import Scoring
from glassformer.attention.masks import Causal, Mask, essential

_FULL_REGISTER = 64  # numbers: the widest there are, 2048 bits of float32
_SHORT = 1 << 14  # cells: up to here CPU gradients are slower in half precision


def refusal(q: Tensor, k: Tensor, v: Tensor, site: Scoring, dropout: float) -> str | None:
    """Why this backend cannot do what is asked; None: it can."""
    del k, v, dropout
    if site.softcap is not None:
        return "scaled_dot_product_attention has no soft-capping"
    if site.bias is not None and not site.bias.is_exact_in(q.dtype):
        return f"scaled_dot_product_attention would round this bias to {q.dtype}, the dtype of q"
    if q.device.type == "cpu" and _hides_nan(q, site.extent.S):
        return "q holds NaN or infinity, and for few keys PyTorch's CPU kernel turns that to zeros"
    return None


def _hides_nan(q: Tensor, n_keys: int) -> bool:
    # The kernel's maximum forgets NaN where the keys do not fill one vector register.
    if n_keys >= _FULL_REGISTER or torch.compiler.is_compiling() or q.is_meta:
        return False
    dtype = torch.float32 if q.dtype == torch.float16 else None  # float16 sums overflow
    return not math.isfinite(q.detach().sum(dtype=dtype))  # one sum finds any NaN


def form(q: Tensor, site: Scoring) -> str:
    """How the mask is told: "none", "is_causal", "tail", "lower_right" or "dense"."""
    if site.bias is not None:
        return "dense"
    L, S = site.extent[2:]
    mask = site.mask
    if not isinstance(mask, Causal) or L == 1:
        mask = essential(mask, site.extent)
    if mask is None:
        return "none"
    if not isinstance(mask, Causal) or mask.offset is not None:
        return "dense"
    if L == S:
        return "is_causal"
    if L > S:
        return "tail"
    kernel = q.is_cuda and q.dtype != torch.float64 and not torch.compiler.is_compiling()
    return "lower_right" if kernel else "dense"


def attend(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    site: Scoring,
    dropout: float = 0.0,
) -> Float[Tensor, "B H L E"]:
    """The weighted sum of the values, by the fastest kernel that PyTorch has for the case."""
    if _learns_slowly(q, k, v, site):
        with torch.autocast("cpu", enabled=False):  # which would go back to half precision
            return attend(q.float(), k.float(), v.float(), site, dropout).to(v.dtype)
    how = form(q, site)
    D, E = q.shape[-1], v.shape[-1]
    if D != E:  # the fused kernels want one width; zeros change neither scores nor sums
        q, k, v = (F.pad(x, (0, max(D, E) - x.shape[-1])) for x in (q, k, v))
    grouped = q.shape[1] != k.shape[1]
    if grouped and q.is_cuda and (how in ("dense", "lower_right") or q.dtype == torch.float32):
        # Only the flash kernel knows grouped heads; for the others copies cost less than falling
        # back to the unfused form.
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        grouped = False
    options = {"dropout_p": dropout, "scale": site.scale, "enable_gqa": grouped}
    if how == "tail":
        first = site.extent.L - site.extent.S
        seen = F.scaled_dot_product_attention(q[:, :, first:], k, v, is_causal=True, **options)
        out = F.pad(seen, (0, 0, first, 0))
    elif how in ("none", "is_causal"):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=how == "is_causal", **options)
    elif how == "lower_right":
        mask = _lower_right(site.extent)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options)
    elif q.is_cuda:
        mask, empty = _filled(_dense(q, site))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options)
        out = out.masked_fill(empty, 0.0)
    else:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=_dense(q, site), **options)
    return out if D == E else out[..., :E]


def _learns_slowly(q: Tensor, k: Tensor, v: Tensor, site: Scoring) -> bool:
    learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    half = q.dtype in (torch.bfloat16, torch.float16)
    return learns and half and q.device.type == "cpu" and site.extent.L * site.extent.S <= _SHORT


def _lower_right(extent: Extent) -> Tensor:
    # Imported here: the module loads torch's compiler.
    from torch.nn.attention.bias import causal_lower_right

    return causal_lower_right(extent.L, extent.S)


def _filled(mask: Tensor) -> tuple[Tensor, Tensor]:
    """A dense mask or bias whose empty rows allow everything, and where these rows are.

    On CUDA in half precision, PyTorch's kernels give a row without any key other than zeros.
    """
    hidden = ~mask if mask.dtype == torch.bool else mask.isneginf()
    empty = hidden.all(-1, keepdim=True)
    return mask | empty if mask.dtype == torch.bool else mask.masked_fill(empty, 0.0), empty


def _dense(q: Tensor, site: Scoring) -> Tensor:
    whole = Tile.whole(site.extent, q.device)
    mask: Mask | None = essential(site.mask, site.extent)
    allowed = None if mask is None else mask.tile(whole)
    if site.bias is None:
        assert allowed is not None
        return allowed.expand(*allowed.shape[:-2], *site.extent[2:])
    scores = site.bias.tile(whole).to(q.dtype)
    return scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
