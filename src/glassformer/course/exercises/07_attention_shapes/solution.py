"""The shapes, read from the tensors themselves."""

import torch

queries, keys, values = torch.zeros(2, 8, 5, 16), torch.zeros(2, 8, 7, 16), torch.zeros(2, 8, 7, 32)

transposed = keys.transpose(-2, -1)
keys_transposed = tuple(transposed.shape)
scores = tuple((queries @ transposed).shape)
weights = tuple((queries @ transposed).softmax(dim=-1).shape)
out = tuple((queries @ transposed @ values).shape)
