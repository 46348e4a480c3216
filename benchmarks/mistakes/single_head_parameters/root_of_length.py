# mistake: scale by the sequence length
import torch
from torch import nn
class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        for n in "qkv":
            setattr(self, n + "_weight", nn.Parameter(torch.randn(dim, head_dim)))
    def forward(self, x):
        q, k, v = x @ self.q_weight, x @ self.k_weight, x @ self.v_weight
        w = torch.softmax(q @ k.transpose(1, 2) / x.size(1) ** 0.5, dim=2)
        return w @ v, w
