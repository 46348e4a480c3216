# mistake: adds x to the result of pre_norm, which has added it already, around the feed-forward network
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, parts, sizes):
        super().__init__()
        self.parts, self.n_heads = parts, sizes.n_heads
        self.q_proj = nn.Linear(sizes.dim, sizes.dim)
        self.k_proj = nn.Linear(sizes.dim, sizes.dim)
        self.v_proj = nn.Linear(sizes.dim, sizes.dim)
        self.out_proj = nn.Linear(sizes.dim, sizes.dim)

    def forward(self, x, context, mask, positions=None):
        q = self.parts.split_heads(self.q_proj(x), self.n_heads)
        k = self.parts.split_heads(self.k_proj(context), self.n_heads)
        v = self.parts.split_heads(self.v_proj(context), self.n_heads)
        if positions is not None:
            q, k = self.parts.rotary(q, k, positions)
        out, _ = self.parts.attention(q, k, v, mask)
        return self.out_proj(self.parts.merge_heads(out))


class EncoderLayer(nn.Module):
    def __init__(self, parts, sizes):
        super().__init__()
        self.parts = parts
        self.attention = Attention(parts, sizes)
        self.feed_forward = parts.GELUFeedForward(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.LayerNorm(sizes.dim)
        self.feed_forward_norm = parts.LayerNorm(sizes.dim)

    def forward(self, x, mask):
        positions = torch.arange(x.shape[1])
        x = self.parts.pre_norm(
            x, lambda y: self.attention(y, y, mask, positions), self.attention_norm
        )
        return x + self.parts.pre_norm(x, self.feed_forward, self.feed_forward_norm)


class DecoderLayer(nn.Module):
    def __init__(self, parts, sizes):
        super().__init__()
        self.parts = parts
        self.attention = Attention(parts, sizes)
        self.cross = Attention(parts, sizes)
        self.feed_forward = parts.GELUFeedForward(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.LayerNorm(sizes.dim)
        self.cross_norm = parts.LayerNorm(sizes.dim)
        self.feed_forward_norm = parts.LayerNorm(sizes.dim)

    def forward(self, x, context, mask, context_mask):
        positions = torch.arange(x.shape[1])
        x = self.parts.pre_norm(
            x, lambda y: self.attention(y, y, mask, positions), self.attention_norm
        )
        x = self.parts.pre_norm(
            x, lambda y: self.cross(y, context, context_mask), self.cross_norm
        )
        return x + self.parts.pre_norm(x, self.feed_forward, self.feed_forward_norm)
