"""A decoder as Llama is built, one token at a time, joined from parts of earlier exercises."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class Attention(nn.Module):
    """one new token looks at all tokens so far, itself included"""

    def __init__(self, parts: Any, sizes: Any) -> None:
        super().__init__()
        self.parts, self.sizes = parts, sizes
        kv_dim = sizes.dim // sizes.n_heads * sizes.n_kv_heads
        self.q_proj = nn.Linear(sizes.dim, sizes.dim, bias=False)
        self.k_proj = nn.Linear(sizes.dim, kv_dim, bias=False)
        self.v_proj = nn.Linear(sizes.dim, kv_dim, bias=False)
        self.out_proj = nn.Linear(sizes.dim, sizes.dim, bias=False)

    def forward(self, x: Tensor, position: int, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        parts, sizes = self.parts, self.sizes
        q = parts.split_heads(self.q_proj(x), sizes.n_heads)  # (B, 1, C) → (B, H, 1, D)
        k = parts.split_heads(self.k_proj(x), sizes.n_kv_heads)  # → (B, K, 1, D)
        v = parts.split_heads(self.v_proj(x), sizes.n_kv_heads)
        # Rotated before they are stored: an old key keeps the angle of its own position.
        q, k = parts.rotary(q, k, torch.tensor([position]), sizes.base)
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)  # (B, K, S, D): old ones first
            v = torch.cat([cache[1], v], dim=2)
        # No mask: the newest token may see everything there is.
        out = parts.grouped_attention(q, k, v)  # (B, H, 1, D)
        return self.out_proj(parts.merge_heads(out)), (k, v)


class Block(nn.Module):
    """x → x + attention(norm(x)) → x + feed_forward(norm(x))"""

    def __init__(self, parts: Any, sizes: Any) -> None:
        super().__init__()
        self.attention = Attention(parts, sizes)
        self.feed_forward = parts.SwiGLU(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.RMSNorm(sizes.dim, sizes.eps)
        self.feed_forward_norm = parts.RMSNorm(sizes.dim, sizes.eps)

    def forward(self, x: Tensor, position: int, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        found, grown = self.attention(self.attention_norm(x), position, cache)
        x = x + found
        return x + self.feed_forward(self.feed_forward_norm(x)), grown


class Writer(nn.Module):
    """token → embedding → blocks → norm → head → logits"""

    def __init__(
        self, embedding: nn.Module, blocks: Sequence[nn.Module], norm: nn.Module, head: nn.Module
    ) -> None:
        super().__init__()
        self.embedding, self.norm, self.head = embedding, norm, head
        self.blocks = nn.ModuleList(blocks)

    def forward(
        self, token: Tensor, position: int, caches: Sequence[Cache | None]
    ) -> tuple[Tensor, list[Cache]]:
        x = self.embedding(token)  # (B, 1) → (B, 1, C)
        filled = []
        for block, old in zip(self.blocks, caches, strict=True):
            x, cache = block(x, position, old)
            filled.append(cache)
        return self.head(self.norm(x))[:, -1], filled  # (B, 1, C) → (B, V)
