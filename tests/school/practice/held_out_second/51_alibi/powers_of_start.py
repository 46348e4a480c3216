# correct: the slopes as powers of the first one, as in the original code, and a nested Python list
import torch


def alibi(n_heads, n_queries, n_keys):
    start = 2.0 ** (-8.0 / n_heads)
    late = n_keys - n_queries
    rows = [
        [[-(start ** (h + 1)) * abs(late + i - j) for j in range(n_keys)] for i in range(n_queries)]
        for h in range(n_heads)
    ]
    return torch.tensor(rows, dtype=torch.float32)
