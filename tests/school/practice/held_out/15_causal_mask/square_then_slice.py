# correct: takes the last rows of a square triangle and attends query by query
import math

import torch


def causal_mask(n_queries, n_keys):
    square = [[column <= row for column in range(n_keys)] for row in range(n_keys)]
    return torch.tensor(square[n_keys - n_queries :], dtype=torch.bool)


def causal_attention(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(L):
        seen = S - L + i + 1
        scores = q[..., i : i + 1, :] @ k[..., :seen, :].mT / math.sqrt(q.shape[-1])
        rows.append(scores.softmax(-1) @ v[..., :seen, :])
    return torch.cat(rows, dim=-2)
