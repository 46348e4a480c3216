# correct: three nested loops over plain numbers
import torch


def alibi(n_heads, n_queries, n_keys):
    bias = torch.zeros(n_heads, n_queries, n_keys)
    slope = 1.0
    for h in range(n_heads):
        slope = 0.5 ** (8 * (h + 1) / n_heads)
        for i in range(n_queries):
            for j in range(n_keys):
                bias[h, i, j] = -slope * abs(n_keys - n_queries + i - j)
    return bias
