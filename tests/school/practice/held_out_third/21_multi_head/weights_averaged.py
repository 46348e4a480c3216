# mistake: the weights are averaged over the heads before they are returned
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        make = lambda: nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, dim)))
        self.q_weight, self.k_weight, self.v_weight, self.out_weight = make(), make(), make(), make()

    def forward(self, x):
        B, L, C = x.shape
        D = C // self.n_heads
        q, k, v = [(x @ w).view(B, L, self.n_heads, D).transpose(1, 2) for w in (self.q_weight, self.k_weight, self.v_weight)]
        weights = (q @ k.mT / math.sqrt(D)).softmax(-1)
        out = (weights @ v).transpose(1, 2).flatten(2) @ self.out_weight
        return out, weights.mean(dim=1)
