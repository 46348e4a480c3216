"""Attention of packed texts on a GPU in half precision, without padding.

Short texts have kernels of our own: one program for each text and head. PyTorch's flash kernel,
which takes the longer ones, computes tiles of 128 × 128, most of which a sentence leaves empty.
"""

# pyright: reportCallIssue=false

import math
from typing import Any

import torch
from torch import Tensor

from glassformer.functional.triton_support import triton_refusal

SHORT = 256  # tokens: a program goes through all tiles of a text
_BLOCK = 64
_LOG2E = math.log2(math.e)


def has_kernels(q: Tensor, longest: int) -> bool:
    """Whether the kernels of ours compute attention of texts that are no longer than that."""
    return longest <= SHORT and q.shape[-1] <= 128 and _run_on(str(q.device))


def _run_on(device: str) -> bool:
    return triton_refusal(torch.device(device)) is None


_run_on._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as in backends/padded.py


def attend_packed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest: int,
    scale: float,
    dropout: float,
    *,
    is_causal: bool,
) -> Tensor:
    """q (N, H, D), k and v (M, K, D) → (N, H, D); `longest` bounds the keys of a text."""
    seed = torch.randint(0, 2**31 - 1, (1,), device=q.device, dtype=torch.int32) if dropout else q
    return _attend(q, k, v, query_starts, key_starts, seed, longest, scale, dropout, is_causal)[0]


def _options(q: Tensor, scale: float, dropout: float, is_causal: bool) -> dict[str, Any]:
    D = q.shape[-1]
    return {
        "scale": scale * _LOG2E,
        "dropout": dropout,
        "D": D,
        "WIDTH": max(16, 1 << (D - 1).bit_length()),
        "BLOCK": _BLOCK,
        "CAUSAL": is_causal,
        "DROPS": dropout > 0,
        "PRECISION": "ieee" if q.dtype == torch.float32 else "tf32",
        "num_warps": 4,
    }


def _rows_together(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


@torch.library.custom_op("glassformer::packed_attention", mutates_args=())
def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    seed: Tensor,
    longest: int,
    scale: float,
    dropout: float,
    is_causal: bool,
) -> tuple[Tensor, Tensor]:
    from glassformer.functional.packed_kernels import packed_forward_kernel

    q, k, v = (_rows_together(x) for x in (q, k, v))
    N, H, D = q.shape
    out, lse = q.new_empty(N, H, D), q.new_empty(H, N, dtype=torch.float32)
    with torch.cuda.device_of(q):
        packed_forward_kernel[(len(query_starts) - 1, H)](
            q,
            k,
            v,
            out,
            lse,
            query_starts,
            key_starts,
            seed,
            *(stride for x in (q, k, v) for stride in x.stride()[:2]),
            out.stride(0),
            N,
            H // k.shape[1],
            longest,
            **_options(q, scale, dropout, is_causal),
        )
    return out, lse


@torch.library.custom_op("glassformer::packed_attention_backward", mutates_args=())
def _attend_backward(
    d_out: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    seed: Tensor,
    longest: int,
    scale: float,
    dropout: float,
    is_causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    from glassformer.functional.packed_kernels import packed_backward_kernel

    d_out, q, k, v = (_rows_together(x) for x in (d_out, q, k, v))
    d_q, d_k, d_v = (x.new_empty(x.shape) for x in (q, k, v))
    N, H, _ = q.shape
    with torch.cuda.device_of(q):
        packed_backward_kernel[(len(query_starts) - 1, k.shape[1])](
            q,
            k,
            v,
            out,
            lse,
            d_out,
            d_q,
            d_k,
            d_v,
            query_starts,
            key_starts,
            seed,
            *(stride for x in (q, k, v) for stride in x.stride()[:2]),
            out.stride(0),
            *d_out.stride()[:2],
            d_k.stride(0),
            N,
            H // k.shape[1],
            longest,
            to_scores=scale,
            **_options(q, scale, dropout, is_causal),
        )
    return d_q, d_k, d_v


@_attend.register_fake
def _(q: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    N, H, D = q.shape
    return q.new_empty(N, H, D), q.new_empty(H, N, dtype=torch.float32)


@_attend_backward.register_fake
def _(d_out: Tensor, q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    del d_out
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _keep(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs[:3], *output, *inputs[3:6])
    ctx.settings = inputs[6:]


def _backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
    found = _attend_backward(gradient, *ctx.saved_tensors, *ctx.settings)
    return *found, *[None] * 7


_attend.register_autograd(_backward, setup_context=_keep)
