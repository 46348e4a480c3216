# mistake: two at once: the first head has slope 1 because h starts at 0, and queries start at position 0
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = torch.tensor([2.0 ** (-8 * h / n_heads) for h in range(n_heads)])
    distance = (torch.arange(n_queries)[:, None] - torch.arange(n_keys)[None, :]).abs()
    return -slopes.view(-1, 1, 1) * distance
