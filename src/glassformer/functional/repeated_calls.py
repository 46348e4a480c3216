"""Calls like earlier ones: checks and the choice of a backend are made once for each kind of call.

A model calls attention with the same shapes in every layer. What is remembered is the kind of call
that `F.scaled_dot_product_attention` computes with flags alone, or with a small mask that says what
a flag would. None of the user's tensors is kept.

    latest   the last kind with such a mask; PyTorch compares all tensors at once
    known    all of them, found by what Python reads from the tensors, which takes twice as long
"""

import math
from collections.abc import Callable
from ctypes import c_float
from typing import Any, cast

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active, _is_any_autocast_enabled
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

try:  # what torch.compile asks before it reuses a graph: class, dtype, device, gradients, shape
    from torch._C._dynamo import guards
except ImportError:  # it is not public; without it kinds are found by what Python reads
    guards = None

from glassformer.functional.backends import native, native_timing, sdpa
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import Causal, Mask

MOST = 4096  # kinds; beyond that (every length of a long text) all are forgotten
SMALL = 256  # numbers of a mask


class RepeatedCall:
    """How a kind of call is computed, and a question whether tensors are of that kind."""

    __slots__ = ("dropout", "is_compared", "is_like", "options", "scale")

    def __init__(self, options: dict[str, Any], scale: float | None, dropout: float) -> None:
        self.options, self.scale, self.dropout = options, scale, dropout
        self.is_like: Callable[[Tensor, Tensor, Tensor], bool] = _is_unlike
        self.is_compared = False  # by PyTorch, from the first repetition on


_latest: dict[type, RepeatedCall] = {}  # by the class of the mask
_known: dict[tuple[Any, ...], RepeatedCall] = {}


def recall_latest(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask | Tensor | None, scale: float | None, dropout: float
) -> dict[str, Any] | None:
    """The options of the kernel, if the latest call with such a mask was of the same kind."""
    if is_dynamo_compiling():
        return None
    known = _latest.get(type(mask))
    if known is None or known.scale != scale or known.dropout != dropout:
        return None
    if not known.is_like(q, k, v) or forward_ad._current_level >= 0:
        return None
    # With another mask than a causal one nothing is remembered.
    has_offset = mask is not None and mask.offset is not None  # pyright: ignore[reportAttributeAccessIssue]
    return None if has_offset else known.options


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
    if mask is not None and (type(mask) is not Causal or mask.offset is not None):
        return None
    learns = q.requires_grad or k.requires_grad or v.requires_grad
    return q.shape, k.shape, v.shape, q.dtype, q.device, learns, type(mask), scale, dropout


def recall_options(kind: tuple[Any, ...], q: Tensor, k: Tensor, v: Tensor) -> dict[str, Any] | None:
    """The options of the kernel for a kind of call, or None; it becomes the latest."""
    known = _known.get(kind)
    if known is None:
        return None
    if not known.is_compared:
        known.is_compared, known.is_like = True, _compare_with(q, k, v)
    _latest[kind[-3]] = known
    return known.options


def _compare_with(q: Tensor, k: Tensor, v: Tensor) -> Callable[[Tensor, Tensor, Tensor], bool]:
    """Whether three tensors are like these, in whatever mode of PyTorch is active then."""
    operands = (q, k, v)
    try:
        found = cast(Any, guards).TensorGuards(
            *operands,
            dynamic_dims_sizes=[list(x.shape) for x in operands],
            dynamic_dims_strides=[[None] * x.ndim for x in operands],  # any
        )
        return found.check if found.check(*operands) else _is_unlike
    except Exception:  # another version of PyTorch
        return _is_unlike


def _is_unlike(q: Tensor, k: Tensor, v: Tensor) -> bool:
    del q, k, v
    return False


def remember_options(
    kind: tuple[Any, ...], q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float
) -> None:
    """Remember how a call was computed, if what its kernel was given depends on shapes alone."""
    form = sdpa.form(q, scoring)
    is_grouped = q.shape[1] != k.shape[1]
    needs_float32 = q.device.type == "cpu" and q.dtype in (torch.bfloat16, torch.float16)
    needs_copies = is_grouped and q.is_cuda and q.dtype == torch.float32
    if form not in ("none", "is_causal", "few") or scoring.scale <= 0 or q.shape[-1] != v.shape[-1]:
        return
    if needs_float32 or needs_copies or q.is_meta:
        return
    if form == "few" and scoring.extent.L * scoring.extent.S > SMALL:
        return
    if q.device.type == "cpu" and _may_be_native(q, k, v, scoring, dropout):
        return
    if len(_known) >= MOST:
        _known.clear()
        _latest.clear()
    # The kernel's own defaults are left out: reading an option takes it microseconds.
    options: dict[str, Any] = {"dropout_p": dropout} if dropout else {}
    if form == "is_causal":
        options["is_causal"] = True
    if form == "few":
        with torch.inference_mode(False):
            options["attn_mask"] = sdpa.additive_mask(q, scoring)
        if type(options["attn_mask"]) is not Tensor:  # made in a mode, of fake tensors for example
            return
    # In float32, as the kernels read it, their 1/√head_dim is ours; in float64 it may not be.
    default = 1 / math.sqrt(q.shape[-1])
    is_default = c_float(scoring.scale).value == c_float(default).value
    if not is_default or (q.dtype == torch.float64 and scoring.scale != default):
        options["scale"] = scoring.scale
    if is_grouped:
        options["enable_gqa"] = True
    _known[kind] = RepeatedCall(options, *kind[-2:])


def _may_be_native(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float) -> bool:
    """Whether the kernel in C may have such a call another time.

    It refuses calls while operations are recorded; and whether gradients follow, which decides what
    is faster, is seen from tensors only if none of them requires one.
    """
    case = native_timing.find_case(q, k, v, scoring)
    if case is None:
        return False
    if q.requires_grad or k.requires_grad or v.requires_grad:
        return True
    is_refused = native.refusal(q, k, v, scoring, dropout) is not None
    return is_refused or native_timing.measure(case) <= native_timing.GAIN
