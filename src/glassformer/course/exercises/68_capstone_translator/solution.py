"""The layers of the shipped translator, joined from parts of earlier exercises."""

from typing import Any

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    """x asks, context answers; positions rotate queries and keys"""

    def __init__(self, parts: Any, sizes: Any) -> None:
        super().__init__()
        self.parts, self.n_heads = parts, sizes.n_heads
        self.q_proj = nn.Linear(sizes.dim, sizes.dim)
        self.k_proj = nn.Linear(sizes.dim, sizes.dim)
        self.v_proj = nn.Linear(sizes.dim, sizes.dim)
        self.out_proj = nn.Linear(sizes.dim, sizes.dim)

    def forward(
        self, x: Tensor, context: Tensor, mask: Tensor, positions: Tensor | None = None
    ) -> Tensor:
        split = self.parts.split_heads
        q = split(self.q_proj(x), self.n_heads)  # (B, L, C) → (B, H, L, D)
        k = split(self.k_proj(context), self.n_heads)  # (B, S, C) → (B, H, S, D)
        v = split(self.v_proj(context), self.n_heads)
        if positions is not None:
            q, k = self.parts.rotary(q, k, positions)
        out, _ = self.parts.attention(q, k, v, mask)  # (B, H, L, D)
        return self.out_proj(self.parts.merge_heads(out))  # (B, L, C)


class EncoderLayer(nn.Module):
    """x → x + attention(norm(x)) → x + feed_forward(norm(x))"""

    def __init__(self, parts: Any, sizes: Any) -> None:
        super().__init__()
        self.parts = parts
        self.attention = Attention(parts, sizes)
        self.feed_forward = parts.GELUFeedForward(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.LayerNorm(sizes.dim)
        self.feed_forward_norm = parts.LayerNorm(sizes.dim)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])

        def look(y: Tensor) -> Tensor:
            return self.attention(y, y, mask, places)

        x = self.parts.pre_norm(x, look, self.attention_norm)
        return self.parts.pre_norm(x, self.feed_forward, self.feed_forward_norm)


class DecoderLayer(nn.Module):
    """x → x + attention(norm(x)) → x + cross(norm(x), context) → x + feed_forward(norm(x))"""

    def __init__(self, parts: Any, sizes: Any) -> None:
        super().__init__()
        self.parts = parts
        self.attention, self.cross = Attention(parts, sizes), Attention(parts, sizes)
        self.feed_forward = parts.GELUFeedForward(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.LayerNorm(sizes.dim)
        self.cross_norm = parts.LayerNorm(sizes.dim)
        self.feed_forward_norm = parts.LayerNorm(sizes.dim)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, context_mask: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1])

        def look_back(y: Tensor) -> Tensor:
            return self.attention(y, y, mask, positions)

        def look_at_source(y: Tensor) -> Tensor:
            # Not rotated: places in two sentences have no distance from each other.
            return self.cross(y, context, context_mask)

        x = self.parts.pre_norm(x, look_back, self.attention_norm)
        x = self.parts.pre_norm(x, look_at_source, self.cross_norm)
        return self.parts.pre_norm(x, self.feed_forward, self.feed_forward_norm)
