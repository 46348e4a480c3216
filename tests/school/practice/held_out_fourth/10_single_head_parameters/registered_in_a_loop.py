# correct: parameters are registered by name in a loop, the softmax is written out
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        for letter in "qkv":
            initial = torch.rand(dim, head_dim).sub(0.5)
            self.register_parameter(f"{letter}_weight", nn.Parameter(initial))

    def forward(self, x):
        q, k, v = (x @ getattr(self, f"{letter}_weight") for letter in "qkv")
        scores = torch.baddbmm(torch.zeros(1, 1, 1, dtype=x.dtype), q, k.mT, alpha=1 / math.sqrt(q.shape[-1]))
        exps = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = exps / exps.sum(-1, keepdim=True)
        return weights.bmm(v), weights
