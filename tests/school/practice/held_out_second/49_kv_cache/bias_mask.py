# correct: empty tensors for a missing cache, positions compared for the mask, an additive bias
import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(dim, dim) for _ in "qkv")

    def forward(self, x, cache=None):
        B, L, C = x.shape
        old_k, old_v = cache if cache is not None else (x[:, :0], x[:, :0])
        k = torch.cat((old_k, self.k_proj(x)), 1)
        v = torch.cat((old_v, self.v_proj(x)), 1)
        S = k.shape[1]
        ahead = torch.arange(S)[None] > torch.arange(S - L, S)[:, None]
        bias = x.new_zeros(L, S).masked_fill(ahead, -torch.inf)
        scores = torch.einsum("blc,bsc->bls", self.q_proj(x), k) / C**0.5 + bias
        return torch.einsum("bls,bsc->blc", scores.softmax(-1), v), (k, v)
