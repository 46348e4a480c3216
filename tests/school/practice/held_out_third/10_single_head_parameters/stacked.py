# correct: the three products in one einsum over stacked matrices
import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        for name in ("q_weight", "k_weight", "v_weight"):
            setattr(self, name, nn.Parameter(torch.empty(dim, head_dim).normal_(std=dim**-0.5)))

    def forward(self, x):
        w = torch.stack([self.q_weight, self.k_weight, self.v_weight])
        q, k, v = torch.einsum("blc,ncd->nbld", x, w)
        weights = torch.softmax(torch.einsum("bld,bsd->bls", q, k) / q.size(-1) ** 0.5, -1)
        return torch.einsum("bls,bsd->bld", weights, v), weights
