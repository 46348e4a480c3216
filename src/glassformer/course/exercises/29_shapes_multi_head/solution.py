"""The shapes of multi-head attention, from the operations themselves."""

import torch
from torch import nn

n_heads = 8
x = torch.zeros(10, 60, 512)

y = nn.Linear(512, 512)(x)
projected = tuple(y.shape)
y = y.unflatten(-1, (n_heads, -1))
split = tuple(y.shape)
k = v = y = y.transpose(1, 2)
q = tuple(y.shape)
k = k.transpose(-2, -1)
keys_transposed = tuple(k.shape)
y = y @ k
scores = tuple(y.shape)
y = y @ v
out_heads = tuple(y.shape)
y = y.transpose(1, 2).flatten(2)
out = tuple(nn.Linear(512, 512)(y).shape)
