"""The shapes, taken from the tensors themselves."""

import torch

queries, keys, values = torch.zeros(2, 8, 5, 16), torch.zeros(2, 8, 7, 16), torch.zeros(2, 8, 7, 32)

turned = keys.transpose(-2, -1)
keys_turned = tuple(turned.shape)
scores = tuple((queries @ turned).shape)
weights = tuple((queries @ turned).softmax(dim=-1).shape)
out = tuple((queries @ turned @ values).shape)
