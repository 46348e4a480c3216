# mistake: forgets the absolute value, so that later keys get a positive bias
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    q_pos = torch.arange(n_queries) + n_keys - n_queries
    distance = q_pos[:, None] - torch.arange(n_keys)[None, :]
    return -slopes[:, None, None] * distance
