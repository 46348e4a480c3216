# correct: lets torch compute the shapes from empty tensors
import torch

q = torch.empty(2, 8, 5, 16)
k = torch.empty(2, 8, 7, 16)
v = torch.empty(2, 8, 7, 32)

keys_transposed = tuple(k.mT.shape)
scores = tuple((q @ k.mT).shape)
weights = scores
out = tuple(torch.empty(scores).matmul(v).shape)
