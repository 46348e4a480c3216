# correct: 中文注释，辅助方法名为 _attention，用 torch.where 做掩码
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        head_dim, rest = divmod(dim, n_heads)
        if rest != 0:
            raise ValueError(f"维度 {dim} 不能被头数 {n_heads} 整除 (not divisible)")
        self.n_heads, self.head_dim = n_heads, head_dim
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def _attention(self, q, k, v, mask):
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim)
        if mask is not None:  # True 表示可以看
            scores = torch.where(mask, scores, torch.tensor(-math.inf, dtype=scores.dtype))
        return self.dropout(scores.softmax(-1)) @ v

    def forward(self, x, mask=None):
        B, L, _ = x.shape
        shape = (B, L, self.n_heads, self.head_dim)
        q = self.q_proj(x).view(shape).transpose(1, 2)  # 分头
        k = self.k_proj(x).view(shape).transpose(1, 2)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        out = self._attention(q, k, v, mask)
        return self.out_proj(out.transpose(1, 2).reshape(B, L, -1))  # 合并后再投影
