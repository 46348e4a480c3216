# correct: einsum for all products, parameters built from one random tensor
import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        start = torch.randn(3, dim, head_dim) * dim**-0.5
        self.q_weight, self.k_weight, self.v_weight = (nn.Parameter(w.clone()) for w in start)
        self.scale = head_dim**-0.5

    def forward(self, x):
        q = torch.einsum("blc,cd->bld", x, self.q_weight)
        k = torch.einsum("blc,cd->bld", x, self.k_weight)
        v = torch.einsum("blc,cd->bld", x, self.v_weight)
        weights = torch.einsum("bid,bjd->bij", q, k).mul(self.scale).softmax(-1)
        return torch.einsum("bij,bjd->bid", weights, v), weights
