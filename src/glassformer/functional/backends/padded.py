"""Attention of packed texts, side by side: padded for the kernel, and packed again behind it.

    (1, H, N, D) ─ pad ─ (B, H, longest, D) ─ sdpa ─ (B, H, longest, E) ─ pack ─ (1, H, N, E)

The matrix of all tokens by all tokens never exists. Padding comes last in each text: in causal
attention no token sees it, otherwise its keys are masked. What padding asks is thrown away.
On a GPU in half precision kernels read packed texts as they are, and nothing is padded.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from glassformer.functional.backends import sdpa
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import And, Causal, Mask, Padding
from glassformer.functional.masks.packed_rows import PackedRow, Sequences
from glassformer.functional.packed_texts import attend_packed, has_kernels


def refusal(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float) -> str | None:
    """Why this backend cannot compute this call; None if it can."""
    found = find_sequences(scoring.mask)
    if found is None:
        return "only texts packed by their lengths can be padded: Sequences, alone or & Causal()"
    # Distances are the same in a text and in its row, if queries and keys are those of one text.
    if scoring.bias is not None and (found[0].is_cross or not scoring.bias.is_relative):
        return "this bias has cells of the packed row, not of each text"
    return sdpa.refusal(q, k, v, scoring, dropout)


def find_sequences(mask: Mask | None) -> tuple[Sequences, bool] | None:
    """The packed texts of a mask and whether it is causal; None if it is another mask."""
    if isinstance(mask, Sequences):
        return mask, False
    if isinstance(mask, And):
        for one, other in ((mask.a, mask.b), (mask.b, mask.a)):
            plain = isinstance(other, Causal) and other.offset is None
            if isinstance(one, Sequences) and not one.is_cross and plain:
                return one, True
    return None


def attend(
    q: Float[Tensor, "1 H N D"],
    k: Float[Tensor, "1 K M D"],
    v: Float[Tensor, "1 K M E"],
    scoring: Scoring,
    dropout: float = 0.0,
) -> Float[Tensor, "1 H N E"]:
    """The weighted sums of the values, text by text."""
    found = find_sequences(scoring.mask)
    assert found is not None, "refused otherwise"
    texts, is_causal = found
    if _has_kernel(q, v, scoring):
        return _attend_packed(q, k, v, texts, scoring.scale, dropout, is_causal=is_causal)
    keys, queries = texts.keys, texts.queries
    q = _pad(q, queries)  # (1, H, N, D) → (B, H, L, D)
    k, v = _pad(k, keys), _pad(v, keys)
    extent = Extent(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    mask = Causal() if is_causal else Padding(keys.lengths)
    out = sdpa.attend(q, k, v, scoring._replace(extent=extent, mask=mask), dropout)
    rows = _Pack.apply(out.transpose(1, 2).flatten(0, 1), queries.cells)  # → (N, H, E)
    return rows.transpose(0, 1)[None]


def _has_kernel(q: Tensor, v: Tensor, scoring: Scoring) -> bool:
    """Whether the flash kernel for packed texts computes this call."""
    D, E = q.shape[-1], v.shape[-1]
    return (
        q.is_cuda
        and q.dtype in (torch.bfloat16, torch.float16)
        and scoring.bias is None
        and D == E <= 256
        and D % 8 == 0
        and (torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active())
        and _has_flash(q.device.index)
    )


def _has_flash(index: int | None) -> bool:
    return (
        torch.backends.cuda.is_flash_attention_available()
        and torch.backends.cuda.flash_sdp_enabled()
        and torch.cuda.get_device_capability(index) >= (8, 0)
    )


# The compiler would end its graph at these questions. torch.compiler.assume_constant_result does
# the same, and loads the compiler.
_has_flash._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _attend_packed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    texts: Sequences,
    scale: float,
    dropout: float,
    *,
    is_causal: bool,
) -> Tensor:
    queries, keys = texts.queries, texts.keys
    longest = queries.places.shape[1], keys.places.shape[1]
    q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))  # (1, H, N, D) → (N, H, D)
    if has_kernels(q, max(longest)):
        out = attend_packed(
            q,
            k,
            v,
            queries.starts,
            keys.starts,
            longest[1],
            scale,
            dropout,
            is_causal=is_causal,
        )
    else:
        q, scale = sdpa.with_positive_scale(q, scale)
        out = torch.ops.aten._flash_attention_forward(
            q,
            k,
            v,
            queries.starts,
            keys.starts,
            *longest,
            dropout,
            is_causal,
            False,
            scale=scale,
        )[0]
    return out.transpose(0, 1)[None]


def _pad(x: Tensor, row: PackedRow) -> Tensor:
    rows = _Pad.apply(x[0].transpose(0, 1), row.cells, row.places)  # → (B, longest, H, D)
    return rows.transpose(1, 2)


class _Pad(Function):
    """Tokens in the cells of padded texts. What padding holds must not matter: it has no gradient.

    Indexing would add the gradients of all cells of a token up, by atomic additions on a GPU.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        rows: Float[Tensor, "N *X"], cells: Int[Tensor, " N"], places: Int[Tensor, "B longest"]
    ) -> Float[Tensor, "B longest *X"]:
        del cells
        return rows.index_select(0, places.flatten()).unflatten(0, places.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        del output
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = grad_outputs
        return gradient.flatten(0, 1).index_select(0, ctx.saved_tensors[0]), None, None


class _Pack(Function):
    """The cells that hold tokens; the gradient of the others is 0."""

    generate_vmap_rule = True

    @staticmethod
    def forward(cells_of_texts: Float[Tensor, "M *X"], cells: Int[Tensor, " N"]) -> Tensor:
        return cells_of_texts.index_select(0, cells)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        del output
        ctx.save_for_backward(inputs[1])
        ctx.n = len(inputs[0])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (gradient,) = grad_outputs
        whole = gradient.new_zeros(ctx.n, *gradient.shape[1:])
        return torch.index_copy(whole, 0, ctx.saved_tensors[0], gradient), None
