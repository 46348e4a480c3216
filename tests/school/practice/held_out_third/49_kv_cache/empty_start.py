# correct: an empty cache takes the place of None; the mask from positions
import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        if cache is None:
            cache = (x[:, :0], x[:, :0])
        past = cache[0].shape[1]
        k, v = (torch.cat((old, proj(x)), dim=1) for old, proj in zip(cache, (self.k_proj, self.v_proj)))
        where = torch.arange(past, past + x.shape[1], device=x.device)
        allowed = torch.arange(k.shape[1], device=x.device) <= where[:, None]
        scores = torch.einsum("blc,bsc->bls", self.q_proj(x), k) * x.shape[-1] ** -0.5
        scores = torch.where(allowed, scores, float("-inf"))
        return scores.softmax(-1) @ v, (k, v)
