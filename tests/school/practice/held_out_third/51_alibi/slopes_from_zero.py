# mistake: the slopes begin at h = 0, so the first head has slope 1
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = 2.0 ** (-8 * torch.arange(n_heads) / n_heads)
    distance = torch.arange(n_keys - n_queries, n_keys)[:, None] - torch.arange(n_keys)
    return -slopes[:, None, None] * distance.abs()
