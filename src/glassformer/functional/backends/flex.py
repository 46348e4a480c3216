"""Attention by FlexAttention: masks and biases compiled into the kernel, empty blocks skipped.

The BlockMask is built from a mask's bounds, block by block, without a dense mask. Numbers are
passed as tensors, so that another length or window size does not compile another kernel. They have
32 bits: with 64, indices of a tile took more shared memory than a GPU has.
"""

import shutil
import sys
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import BackendError
from glassformer.functional.biases import Bias
from glassformer.functional.cells import Blocks, Cells, Extent
from glassformer.functional.checks import Scoring
from glassformer.functional.graph_capture import is_being_captured, is_traced, is_unobserved
from glassformer.functional.masks import Mask, current_stream, derive

BLOCK = 128  # FlexAttention's default
_NARROWEST = 16  # the smallest width of the matrix units
_MOST_KERNELS = 256  # kinds of mask, bias, dtype and layout that may be compiled in one process
# Kernels whose tiles need too much shared memory are compiled with fewer loads at a time.
_ATTEMPTS: tuple[dict[str, int], ...] = ({}, {"num_stages": 2}, {"num_stages": 1})


def refusal(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float) -> str | None:
    """Why this backend cannot compute this call; None if it can."""
    if is_traced(q):
        return "this backend compiles by itself and cannot run inside another graph or transform"
    if dropout:
        return "FlexAttention has no dropout"
    if q.device.type not in ("cpu", "cuda"):
        return f"FlexAttention runs on CPU and CUDA, not on {q.device.type}"
    if q.dtype == torch.float64:
        return "FlexAttention computes in float32 at most"
    if q.device.type == "cuda" and min(q.shape[-1], v.shape[-1]) < _NARROWEST:
        return f"FlexAttention's CUDA kernels need heads at least {_NARROWEST} wide"
    if q.device.type == "cpu":
        learned = (q, k, v, *(scoring.bias.tensors() if scoring.bias is not None else ()))
        if torch.is_grad_enabled() and any(t.requires_grad for t in learned):
            return "FlexAttention computes no gradients on the CPU"
        if not has_avx2():
            return "FlexAttention's CPU kernels need an x86 processor with AVX2"
        if not _has_compiler():
            return "FlexAttention needs a C++ compiler on the CPU, and none was found"
    if _failures and _failures.get(_kind(q, v, scoring)) == len(_ATTEMPTS):
        return "PyTorch's compiler failed on this kind of mask or bias before"
    return None


def attend(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    scoring: Scoring,
    dropout: float = 0.0,
) -> Float[Tensor, "B H L E"]:
    """The weighted sum of the values, from a kernel compiled for this kind of mask and bias."""
    del dropout  # refused above
    from torch._dynamo.exc import TorchDynamoException

    score_mod, blocks = (
        _score_mod(scoring, q.device),
        block_mask(scoring.mask, scoring.extent, q.device),
    )
    options = {"scale": scoring.scale, "enable_gqa": q.shape[1] != k.shape[1]}
    kind = _kind(q, v, scoring)
    while True:
        attempt = _failures.get(kind, 0)
        chosen = _ATTEMPTS[min(attempt, len(_ATTEMPTS) - 1)]
        try:
            with torch._dynamo.config.patch(recompile_limit=_MOST_KERNELS):
                return _compile_flex()(
                    q, k, v, score_mod, blocks, **options, kernel_options=chosen or None
                )
        except TorchDynamoException as error:
            is_too_large = "out of resource" in str(error)
            _failures[kind] = attempt + 1 if is_too_large else len(_ATTEMPTS)
            if _failures[kind] >= len(_ATTEMPTS):
                raise BackendError(_describe_failure(error, q)) from error


_Kind = tuple[Any, ...]
_failures: dict[_Kind, int] = {}  # how many of the attempts failed


def _kind(q: Tensor, v: Tensor, scoring: Scoring) -> _Kind:
    # What decides whether a kernel can be compiled.
    sizes = (q.device.type, q.dtype, q.shape[-1], v.shape[-1], scoring.softcap is None)
    return (*sizes, _classes(scoring.mask), _classes(scoring.bias))


def _classes(rule: Mask | Bias | None) -> tuple[Any, ...]:
    if rule is None:
        return ()
    parts = vars(rule).values()
    return type(rule), *(_classes(each) for each in parts if isinstance(each, Mask | Bias))


def _describe_failure(error: Exception, q: Tensor) -> str:
    lines = [line.split("error:")[-1] for line in str(error).splitlines() if "rror" in line]
    reason = (lines[-1] if lines else str(error)).strip()
    return (
        f"backend='flex' cannot compute this exactly: PyTorch's compiler fails on this kind of "
        f"mask or bias for {q.dtype} on {q.device.type} ({reason[:160]}). "
        "Leave backend out, or use backend='streaming'."
    )


def block_mask(mask: Mask | None, extent: Extent, device: torch.device) -> Any:
    """The BlockMask of a mask, built once: for all that print the same, if they have no tensors."""
    if mask is None:
        return None
    if mask.is_static and is_unobserved() and not is_being_captured():
        return _build_once(_MaskKey(mask), extent, device, current_stream(device))
    return derive(mask, "blocks", extent, device, partial(_build_block_mask, mask, extent, device))


def _build_block_mask(mask: Mask, extent: Extent, device: torch.device) -> Any:
    from torch.nn.attention.flex_attention import BlockMask

    blocks = Blocks(extent.L, extent.S, BLOCK, BLOCK, device)
    possible, certain = blocks.spread(mask.bounds(blocks))
    traced = mask.to_tensors(device)
    L, S = _as_tensors(extent, device)

    def mask_mod(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return traced.allows(Cells(b, h, q, k, L, S))

    return BlockMask.from_kv_blocks(
        *_list_blocks(possible & ~certain),
        *_list_blocks(certain),
        (BLOCK, BLOCK),
        mask_mod,
        seq_lengths=(extent.L, extent.S),
    )


class _MaskKey:
    """A mask as a cache key: masks without tensors are equal if they print the same."""

    def __init__(self, mask: Mask) -> None:
        self.mask, self.text = mask, repr(mask)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _MaskKey) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=32)
def _build_once(key: _MaskKey, extent: Extent, device: torch.device, stream: int) -> Any:
    del stream  # on another one it may not be complete
    with torch.inference_mode(False):  # it may be needed where gradients are
        return _build_block_mask(key.mask, extent, device)


def _list_blocks(wanted: Tensor) -> tuple[Tensor, Tensor]:
    # The number of wanted blocks in each row of blocks, and their indices, wanted ones first. The
    # kernels assume without checking that these lists are contiguous.
    wanted = wanted.contiguous()
    count = wanted.sum(-1, dtype=torch.int32)
    which = wanted.to(torch.int8).argsort(dim=-1, descending=True, stable=True)
    return count, which.to(torch.int32)


def _score_mod(scoring: Scoring, device: torch.device) -> Callable[..., Tensor] | None:
    bias, softcap = scoring.bias, scoring.softcap
    if bias is None and softcap is None:
        return None
    L, S = _as_tensors(scoring.extent, device)
    table = None
    if bias is not None and bias.is_relative and bias.is_data:
        # One number to look up, instead of a logarithm for each cell.
        table = bias.by_distance(scoring.extent, 0, device)

    def score_mod(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        if softcap is not None:
            score = softcap * torch.tanh(score / softcap)
        if table is not None:
            score = score + table[h, q - k + (S - 1)]
        elif bias is not None:
            score = score + bias.values(Cells(b, h, q, k, L, S))
        return score

    return score_mod


def _as_tensors(extent: Extent, device: torch.device) -> list[Tensor]:
    # Filled on the device: copying a number to a GPU would wait for all that it computes.
    return [torch.full((), n, dtype=torch.int32, device=device) for n in (extent.L, extent.S)]


@cache
def _compile_flex() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, fullgraph=True)


@cache
def has_avx2() -> bool:
    """Whether PyTorch generates FlexAttention kernels for this CPU (PyTorch's own condition)."""
    capability = torch.backends.cpu.get_cpu_capability()
    return sys.platform != "darwin" and capability in ("AVX2", "AVX512")


@cache
def _has_compiler() -> bool:
    return any(shutil.which(name) for name in ("g++", "clang++", "c++", "cl"))
