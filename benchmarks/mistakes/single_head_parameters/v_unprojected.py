# mistake: queries and keys are exchanged
import torch
from torch import nn
class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_weight = nn.Parameter(torch.randn(dim, head_dim))
        self.k_weight = nn.Parameter(torch.randn(dim, head_dim))
        self.v_weight = nn.Parameter(torch.randn(dim, head_dim))
    def forward(self, x):
        k = x @ self.q_weight
        q = x @ self.k_weight
        v = x @ self.v_weight
        w = torch.softmax(q @ k.transpose(1, 2) / k.size(-1) ** 0.5, dim=2)
        return w @ v, w
