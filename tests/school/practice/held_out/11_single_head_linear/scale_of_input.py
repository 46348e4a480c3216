# mistake: divides by the root of x.shape[-1], which is dim, where head_dim is wanted.
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, head_dim, bias=False)
        self.k_proj = nn.Linear(dim, head_dim, bias=False)
        self.v_proj = nn.Linear(dim, head_dim, bias=False)

    def forward(self, x):
        keys = self.k_proj(x)
        queries = self.q_proj(x)
        values = self.v_proj(x)
        attn_scores = queries @ keys.transpose(1, 2)
        attn_weights = torch.softmax(attn_scores / math.sqrt(x.shape[-1]), dim=-1)
        return attn_weights @ values, attn_weights
