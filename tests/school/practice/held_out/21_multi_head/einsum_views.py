# correct: einsum on matrices viewed as (C, H, D)
import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.h = n_heads
        self.q_weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(dim, dim)))
        self.k_weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(dim, dim)))
        self.v_weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(dim, dim)))
        self.out_weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(dim, dim)))

    def forward(self, x):
        C = x.shape[-1]
        d = C // self.h
        q = torch.einsum("blc,chd->bhld", x, self.q_weight.view(C, self.h, d))
        k = torch.einsum("blc,chd->bhld", x, self.k_weight.view(C, self.h, d))
        v = torch.einsum("blc,chd->bhld", x, self.v_weight.view(C, self.h, d))
        weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / d**0.5, dim=-1)
        heads = torch.einsum("bhij,bhjd->bhid", weights, v)
        return torch.einsum("bhid,hdc->bic", heads, self.out_weight.view(self.h, d, C)), weights
