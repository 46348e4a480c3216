# correct: einsum on the layers' weights, viewed as (H, D, C)
import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)
        self.h, self.d, self.e = n_heads, head_dim, value_dim

    def forward(self, x, context):
        q = torch.einsum("blc,hdc->bhld", x, self.q_proj.weight.view(self.h, self.d, -1))
        k = torch.einsum("bsc,hdc->bhsd", context, self.k_proj.weight.view(self.h, self.d, -1))
        v = torch.einsum("bsc,hec->bhse", context, self.v_proj.weight.view(self.h, self.e, -1))
        weights = (torch.einsum("bhld,bhsd->bhls", q, k) * self.d**-0.5).softmax(dim=3)
        heads = torch.einsum("bhls,bhse->blhe", weights, v)
        return self.out_proj(heads.flatten(2)), weights
