# correct: an empty tensor for a missing cache, and masks by positions
import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        old_k, old_v = cache or (x[:, :0], x[:, :0])
        k = torch.cat((old_k, self.k_proj(x)), dim=1)
        v = torch.cat((old_v, self.v_proj(x)), dim=1)
        past = old_k.shape[1]
        query_at = past + torch.arange(x.shape[1])
        key_at = torch.arange(k.shape[1])
        scores = torch.einsum("bld,bsd->bls", self.q_proj(x), k) / x.shape[-1] ** 0.5
        scores = torch.where(key_at <= query_at[:, None], scores, -torch.inf)
        return torch.einsum("bls,bsd->bld", scores.softmax(dim=-1), v), (k, v)
