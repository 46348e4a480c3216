"""Attention on a CPU by a kernel in C, in a band of the matrix: what lies outside is left out.

A band is what Causal, Window, Padding and Prefix allow, alone or combined by &; Documents may cut
pieces out of it, and Causal() | Prefix(n) adds a rectangle to it. PyTorch's kernel has only a
causal flag, and computes much of what it hides; other masks are numbers that it adds. Here the
upper edge is followed 16 keys at a time, forward and backward. Soft-capping, and biases that depend
on distances, are computed on the way.

Results do not depend on the number of threads: one thread computes a block of queries, or all
gradients of a head.
"""

import ctypes
import hashlib
from collections.abc import Callable, Iterator
from functools import cache, reduce
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.compilation import ATTENTION
from glassformer.functional.autocast import without_autocast
from glassformer.functional.backends.streaming_gradients import Call, second_gradients
from glassformer.functional.biases import Bias
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring
from glassformer.functional.graph_capture import is_traced, is_unobserved
from glassformer.functional.masks import And, Causal, Documents, Mask, Or, Prefix, Window
from glassformer.functional.masks.limits import Limits, is_band
from glassformer.functional.native_library import find_threads, load_library
from glassformer.functional.reference import attention_weights
from glassformer.functional.tiles import Plan, split_groups

BLOCK = 64  # of the kernel: queries, and keys at a time
GROUP, WIDEST = 16, 256  # head_dim is a multiple of the one, up to the other


def refusal(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float) -> str | None:
    """Why this backend cannot compute this call; None if it can."""
    if q.device.type != "cpu" or q.dtype != torch.float32:
        return "the kernel in C computes float32 on a CPU"
    if is_traced(q) or not is_unobserved(q, k, v):
        return "a graph, a transform or a subclass of Tensor cannot see what a kernel in C does"
    if _split(scoring.mask) is None:
        return (
            "the kernel in C knows Causal, Window, Padding, Prefix, one Documents and one "
            "Causal | Prefix, alone or combined by &"
        )
    if dropout:
        return "the kernel in C knows no dropout"
    if scoring.bias is not None and (why := _refusal_of_bias(scoring.bias, scoring.softcap)):
        return why
    D, E = q.shape[-1], v.shape[-1]
    if D != E or D % GROUP or not 0 < D <= WIDEST:
        return (
            f"the kernel in C needs head_dim = value_dim, a multiple of {GROUP} up to {WIDEST}; "
            f"got {D} and {E}"
        )
    return None if find_kernel() is not None else "there is no C compiler"


class _Parts(NamedTuple):
    """A mask, split into what the kernel takes as separate arguments."""

    band: Mask | None
    documents: Documents | None
    prefix: Prefix | None  # of Causal() | Prefix(n), whose causal mask is part of the band

    def numbers(self, extent: Extent, device: torch.device) -> tuple[Tensor | None, ...]:
        """Documents of queries and of keys, and lengths: one row, or one for each sequence."""
        queries = keys = length = None
        if self.documents is not None:
            queries, keys = (_with_rows(x.long()) for x in self.documents.numbers(*extent[2:]))
        if self.prefix is not None:
            length = torch.as_tensor(self.prefix.length, device=device).long().reshape(-1)
        return queries, keys, length


def _split(mask: Mask | None) -> _Parts | None:
    """The parts of a mask; None if the kernel does not know it."""
    parts = list(_list_parts(mask))
    documents = [part for part in parts if isinstance(part, Documents)]
    unions = [part for part in parts if isinstance(part, Or)]
    bands = [part for part in parts if not isinstance(part, Documents | Or)]
    if len(documents) > 1 or len(unions) > 1 or not all(map(is_band, bands)):
        return None
    prefix = None
    for union in unions:
        causal, prefix = union.a, union.b
        if isinstance(causal, Prefix):
            causal, prefix = prefix, causal
        if not isinstance(causal, Causal) or not isinstance(prefix, Prefix):
            return None
        if any(map(_hides_later_keys, bands)):  # also those of the prefix
            return None
        bands.append(causal)
    band = reduce(And, bands) if bands else None
    return _Parts(band, documents[0] if documents else None, prefix)


def _list_parts(mask: Mask | None) -> Iterator[Mask]:
    """The masks that a mask joins by &."""
    if isinstance(mask, And):
        yield from _list_parts(mask.a)
        yield from _list_parts(mask.b)
    elif mask is not None:
        yield mask


def _hides_later_keys(mask: Mask) -> bool:
    return isinstance(mask, Causal) or (isinstance(mask, Window) and mask.right is not None)


def _refusal_of_bias(bias: Bias, softcap: float | None) -> str | None:
    if not bias.is_relative or not bias.is_exact_in(torch.float32):
        return "the kernel in C knows float32 biases that depend on the distance alone"
    if torch.is_grad_enabled() and any(x.requires_grad for x in bias.tensors()):
        return "the kernel in C has no gradient for a bias"
    if not is_unobserved(*bias.tensors()):
        return "a subclass of Tensor cannot see what a kernel in C does"
    return None if softcap is None else "the kernel in C has no soft-capping beside a bias"


def attend(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    scoring: Scoring,
    dropout: float = 0.0,
) -> Float[Tensor, "B H L E"]:
    """The weighted sum of the values, and a backward pass that computes the weights again."""
    del dropout
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return _Native.apply(scoring, q, k, v)  # type: ignore[return-value]
    return _require_kernel().attend(q, k, v, scoring)[0]


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scoring: Scoring, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, norms = _require_kernel().attend(q, k, v, scoring)
        ctx.save_for_backward(q, k, v, out, norms)
        ctx.scoring = scoring
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, norms = ctx.saved_tensors
        (grad_out,) = grad_outputs
        if is_traced(grad_out) or not is_unobserved(grad_out):
            return None, *_gradients_by_definition(ctx.scoring, grad_out, q, k, v)
        return None, *_Gradients.apply(ctx.scoring, out.detach(), norms, grad_out, q, k, v)  # type: ignore[misc]


class _Gradients(torch.autograd.Function):
    """The gradients as a function of the operands, which also determine `out` and `norms`."""

    @staticmethod
    def forward(
        ctx: Any, scoring: Scoring, out: Tensor, norms: Tensor, grad_out: Tensor, *operands: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(grad_out, *operands)
        ctx.scoring = scoring
        return _require_kernel().differentiate(*operands, out, norms, grad_out, scoring)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        grad_out, *operands = ctx.saved_tensors
        scoring = ctx.scoring
        with without_autocast(grad_out):
            call = Call(scoring, Plan.of(scoring.extent, scoring.mask, grad_out.device), None)
            grads = second_gradients(call, grad_outputs, grad_out, operands)
        return None, None, None, *grads


def _gradients_by_definition(
    scoring: Scoring, grad_out: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same by PyTorch's operations, for `vmap` over gradients: holds the matrix."""
    with without_autocast(grad_out):
        weights = attention_weights(q, k, **scoring.options())  # B H L S
        n_groups = q.shape[1] // k.shape[1]
        k_heads, v_heads = (x.repeat_interleave(n_groups, dim=1) for x in (k, v))
        dweights = grad_out @ v_heads.transpose(-1, -2)
        drift = (weights * dweights).sum(-1, keepdim=True)
        dscores = weights * (dweights - drift) * scoring.scale
        if scoring.softcap is not None:
            scores = q @ k_heads.transpose(-1, -2) * scoring.scale
            dscores = dscores * (1 - (scores / scoring.softcap).tanh().square())
        dk, dv = dscores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ grad_out
        groups = (len(k), k.shape[1], n_groups, *k.shape[2:])  # PyTorch's older vmap: no unflatten
        return dscores @ k_heads, dk.reshape(groups).sum(2), dv.reshape(groups).sum(2)


class Kernel(NamedTuple):
    """The functions of native_attention.c on tensors."""

    attend: Callable[..., tuple[Tensor, Tensor]]
    differentiate: Callable[..., tuple[Tensor, Tensor, Tensor]]


class _Job(ctypes.Structure):
    """`job_t` of native_attention.c; a tensor is its address and three strides."""

    _fields_ = (
        ("tensors", ctypes.c_int64 * (4 * 8)),  # q, k, v, out, grad, dq, dk, dv
        ("norms", ctypes.c_void_p),
        ("limits", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("query_documents", ctypes.c_void_p),
        ("key_documents", ctypes.c_void_p),
        ("prefixes", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("B", "H", "K", "L", "S", "D")),
        *((name, ctypes.c_int64) for name in ("limits_batch", "bias_head")),
        *((name, ctypes.c_int64) for name in ("queries_batch", "keys_batch", "prefixes_batch")),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
        ("next", ctypes.c_int64),
    )


@cache
def version() -> str:
    """What changes with the kernel: a measured time is that of one version."""
    texts = [path.read_bytes() for path in (ATTENTION.source, *ATTENTION.included)]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


@cache
def find_kernel() -> Kernel | None:
    """The kernel; None where it cannot be compiled."""
    library = load_library(ATTENTION)
    if library is None:
        return None
    for function in (library.attend, library.differentiate):
        function.argtypes = [ctypes.POINTER(_Job), ctypes.c_void_p, ctypes.c_uint]
        function.restype = ctypes.c_int
    parallel = find_threads().parallel

    def run(function: Any, scoring: Scoring, norms: Tensor, *tensors: Tensor) -> None:
        (B, H, L, D), (_, K, S, _) = tensors[0].shape, tensors[1].shape
        numbers = [n for x in tensors for n in (x.data_ptr(), *x.stride()[:3])]
        parts = _split(scoring.mask)
        assert parts is not None, "refusal says so first"
        limits = Limits.of(parts.band, scoring.extent).tensor(B, norms.device).contiguous()
        bias = None
        if scoring.bias is not None:
            bias = scoring.bias.by_distance(scoring.extent, BLOCK, norms.device).float()
            bias = bias.contiguous()
        rows = (limits, bias, *parts.numbers(scoring.extent, norms.device))
        job = _Job(
            (ctypes.c_int64 * (4 * 8))(*numbers),
            norms.data_ptr(),
            *(None if x is None else x.data_ptr() for x in rows),
            *(B, H, K, L, S, D),
            *(0 if x is None or len(x) == 1 else x.stride(0) for x in rows),
            scale=scoring.scale,
            softcap=scoring.softcap or 0.0,
        )
        if not function(job, parallel, torch.get_num_threads()):
            raise MemoryError("attention by the kernel in C found no memory for its sums")

    def attend(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring) -> tuple[Tensor, Tensor]:
        q, k, v = _with_rows(q), _with_rows(k), _with_rows(v)
        out, norms = _new_heads(q), q.new_empty(*q.shape[:3], 2)
        run(library.attend, scoring, norms, q, k, v, out)
        return out, norms

    def differentiate(
        q: Tensor, k: Tensor, v: Tensor, out: Tensor, norms: Tensor, grad: Tensor, scoring: Scoring
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, out, grad = map(_with_rows, (q, k, v, out, grad))
        H, S = q.shape[1], k.shape[2]
        dq, dk, dv = _new_heads(q), _new_heads(q, S), _new_heads(q, S)
        run(library.differentiate, scoring, norms, q, k, v, out, grad, dq, dk, dv)
        if k.shape[1] != H:
            dk, dv = (split_groups(x, k.shape[1]).sum(2) for x in (dk, dv))
        return dq, dk, dv

    return Kernel(attend, differentiate)


def _require_kernel() -> Kernel:
    kernel = find_kernel()
    assert kernel is not None, "refusal says so first"
    return kernel


def _with_rows(x: Tensor) -> Tensor:
    """With the numbers of a row side by side; rows may lie anywhere."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _new_heads(q: Tensor, length: int | None = None) -> Tensor:
    # As (B, L, H, D) in memory: that is how heads are split and merged.
    B, H, L, D = q.shape
    return q.new_empty(B, L if length is None else length, H, D).transpose(1, 2)
