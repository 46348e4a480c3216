# correct: concatenates the three weights and projects once
import torch
import torch.nn.functional as F
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, head_dim, bias=False)
        self.k_proj = nn.Linear(dim, head_dim, bias=False)
        self.v_proj = nn.Linear(dim, head_dim, bias=False)

    def forward(self, x):
        fused = torch.cat([self.q_proj.weight, self.k_proj.weight, self.v_proj.weight])
        q, k, v = (x @ fused.T).chunk(3, dim=-1)
        weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) * q.size(-1) ** -0.5, dim=-1)
        return torch.bmm(weights, v), weights
