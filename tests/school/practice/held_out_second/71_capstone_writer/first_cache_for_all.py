# mistake: hands the cache that one block returns on to the next block instead of giving each block its own
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, parts, sizes):
        super().__init__()
        self.parts, self.sizes = parts, sizes
        kv_dim = sizes.dim // sizes.n_heads * sizes.n_kv_heads
        self.q_proj = nn.Linear(sizes.dim, sizes.dim, bias=False)
        self.k_proj = nn.Linear(sizes.dim, kv_dim, bias=False)
        self.v_proj = nn.Linear(sizes.dim, kv_dim, bias=False)
        self.out_proj = nn.Linear(sizes.dim, sizes.dim, bias=False)

    def forward(self, x, position, cache=None):
        q = self.parts.split_heads(self.q_proj(x), self.sizes.n_heads)
        k = self.parts.split_heads(self.k_proj(x), self.sizes.n_kv_heads)
        v = self.parts.split_heads(self.v_proj(x), self.sizes.n_kv_heads)
        q, k = self.parts.rotary(q, k, torch.tensor([position]), self.sizes.base)
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        out = self.parts.grouped_attention(q, k, v)
        return self.out_proj(self.parts.merge_heads(out)), (k, v)


class Block(nn.Module):
    def __init__(self, parts, sizes):
        super().__init__()
        self.attention = Attention(parts, sizes)
        self.feed_forward = parts.SwiGLU(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.RMSNorm(sizes.dim, sizes.eps)
        self.feed_forward_norm = parts.RMSNorm(sizes.dim, sizes.eps)

    def forward(self, x, position, cache=None):
        found, cache = self.attention(self.attention_norm(x), position, cache)
        x = x + found
        x = x + self.feed_forward(self.feed_forward_norm(x))
        return x, cache


class Writer(nn.Module):
    def __init__(self, embedding, blocks, norm, head):
        super().__init__()
        self.embedding = embedding
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.head = head

    def forward(self, token, position, caches):
        x = self.embedding(token)
        new_caches = []
        cache = caches[0]
        for block in self.blocks:
            x, cache = block(x, position, cache)
            new_caches.append(cache)
        return self.head(self.norm(x))[:, -1], new_caches
