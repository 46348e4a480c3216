"""Calls like earlier ones: checks and the choice of a backend are made once for each kind of call.

A model calls attention with the same shapes in every layer. What is remembered is the kind of call
that `F.scaled_dot_product_attention` computes with flags alone; no tensor is kept.
"""

import math
from ctypes import c_float
from typing import Any

import torch
from torch import Tensor, is_grad_enabled
from torch._C import _are_functorch_transforms_active, _is_any_autocast_enabled
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

from glassformer.functional.backends import sdpa
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import Causal, Mask

MOST = 4096  # kinds; beyond that (every length of a long text) all are forgotten
_known: dict[tuple[Any, ...], dict[str, Any]] = {}

recall_options = _known.get  # the options of the kernel for a kind of call, or None


def kind_of_call(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask | Tensor | None, scale: float | None, dropout: float
) -> tuple[Any, ...] | None:
    """All that decides how a call without bias is computed; None if more than that does.

    That k and v have the dtype and the device of q is left to the kernel, which refuses others.
    Whatever else traces a call passes tensors of a class of its own. Functions are imported by
    name, because finding one in its module takes as long as calling it.
    """
    if is_dynamo_compiling() or not (type(q) is type(k) is type(v) is Tensor):
        return None
    if _is_any_autocast_enabled() or _are_functorch_transforms_active():
        return None
    if forward_ad._current_level >= 0:
        return None
    learns = None
    if mask is not None:
        if type(mask) is not Causal or mask.offset is not None:
            return None
        # What learns may have a backend of its own.
        learns = is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    return q.shape, k.shape, v.shape, q.dtype, q.device, learns, scale, dropout


def remember_options(
    kind: tuple[Any, ...], q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float
) -> None:
    """Remember how a call was computed, if flags are all that its kernel was given."""
    form = sdpa.form(q, scoring)
    is_grouped = q.shape[1] != k.shape[1]
    needs_float32 = q.device.type == "cpu" and q.dtype in (torch.bfloat16, torch.float16)
    needs_copies = is_grouped and q.is_cuda and q.dtype == torch.float32
    if form not in ("none", "is_causal") or scoring.scale <= 0 or q.shape[-1] != v.shape[-1]:
        return
    if needs_float32 or needs_copies or q.is_meta:
        return
    if len(_known) >= MOST:
        _known.clear()
    # The kernel's own defaults are left out: reading an option takes it microseconds.
    options: dict[str, Any] = {"dropout_p": dropout} if dropout else {}
    if form == "is_causal":
        options["is_causal"] = True
    # In float32, as the kernels read it, their 1/√head_dim is ours; in float64 it may not be.
    default = 1 / math.sqrt(q.shape[-1])
    is_default = c_float(scoring.scale).value == c_float(default).value
    if not is_default or (q.dtype == torch.float64 and scoring.scale != default):
        options["scale"] = scoring.scale
    if is_grouped:
        options["enable_gqa"] = True
    _known[kind] = options
