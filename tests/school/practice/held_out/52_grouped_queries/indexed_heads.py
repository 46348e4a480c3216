# correct: picks the key-value head of each query head by an index
import math

import torch


def grouped_attention(q, k, v):
    heads = q.shape[1]
    owner = torch.arange(heads) // (heads // k.shape[1])
    scores = torch.einsum("bhld,bhsd->bhls", q, k[:, owner]) / math.sqrt(q.shape[3])
    return torch.einsum("bhls,bhsd->bhld", scores.softmax(3), v[:, owner])
