# correct: three nested loops over heads, queries and keys
import torch


def alibi(n_heads, n_queries, n_keys):
    bias = torch.empty(n_heads, n_queries, n_keys, dtype=torch.float32)
    for h in range(n_heads):
        slope = 1 / 2 ** (8 * (h + 1) / n_heads)
        for i in range(n_queries):
            for j in range(n_keys):
                bias[h, i, j] = -slope * abs(n_keys - n_queries + i - j)
    return bias
