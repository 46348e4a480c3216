"""Prompts of a decoder, read on a GPU from the weights alone, in few operations for each layer.

Up to some hundred tokens the host is what takes time: the modules ask for two to three times as
many operations, and check and prepare at each of them.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.generation.cuda_step import CudaStep
from glassformer.generation.step import normalize, rotate
from glassformer.models.decoder_weights import AttentionWeights


def read_prompts(
    step: CudaStep,
    tokens: Int[Tensor, "B L"],
    missing: Int[Tensor, " B"] | None,
    *,
    copies: int = 1,
    rows: Int[Tensor, " copies*B"] | None = None,
) -> Float[Tensor, "B L C"]:
    """The hidden states of prompts; keys and values go into the memory, `copies` times.

    They go into these rows of the memory; without, into all.
    """
    weights, config, (B, L) = step.weights, step.config, tokens.shape
    mask = _mask_keys(L, missing, config.window, tokens.device)
    places = torch.arange(L, device=tokens.device)
    if missing is not None:
        places = (places - missing[:, None]).clamp(min=0)
    x = F.embedding(tokens, weights.embedding)
    x = x if weights.embedding_scale == 1.0 else x * weights.embedding_scale
    x = x if weights.stack.positions is None else x + step.added[places]
    turns = None
    if config.positions.kind == "rotary":
        turns = step.cos[places][..., None, :], step.sin[places][..., None, :]  # (…, L, 1, D)
    H, n = config.n_heads, config.n_heads + config.n_kv_heads

    def attend(i: int, heads: Tensor, own: AttentionWeights) -> Tensor:
        qkv = heads.unflatten(-1, (-1, config.head_dim)).unflatten(0, (B, L))  # B L H+2K D
        q, k, v = qkv[:, :, :H], qkv[:, :, H:n], qkv[:, :, n:]
        if own.q_norm is not None and own.k_norm is not None:
            q, k = normalize(q, own.q_norm), normalize(k, own.k_norm)
        if turns is not None:
            q, k = (rotate(each, *turns, config.positions.layout) for each in (q, k))
        for kind, each in enumerate((k, v)):
            kept = each if copies == 1 else each.repeat_interleave(copies, dim=0)
            step.memory[i, slice(None) if rows is None else rows, :L, kind] = kept
        out = F.scaled_dot_product_attention(
            *(each.transpose(1, 2) for each in (q, k, v)),
            attn_mask=mask,
            is_causal=mask is None,
            scale=config.attention_scale,
            enable_gqa=config.n_heads != config.n_kv_heads,
        )
        return out.transpose(1, 2).flatten(0, 1).flatten(1)  # (B, H, L, D) → (BL, HD)

    return step.run_layers(x.flatten(0, 1), attend).unflatten(0, (B, L))


def _mask_keys(
    L: int, missing: Tensor | None, window: int | None, device: torch.device
) -> Bool[Tensor, "_ 1 L L"] | None:
    """Which keys each query sees; None: all up to its own. Padding sees itself, for want of NaN."""
    if missing is None and window is None:
        return None
    j = torch.arange(L, device=device)
    i = j[:, None]
    seen = j <= i
    if window is not None:
        seen = seen & (j > i - window)
    if missing is not None:
        seen = seen & (j >= missing[:, None, None])
    return (seen | (i == j)).view(-1, 1, L, L)
