# mistake: always uses the slopes of eight heads, 1/2, 1/4, …
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = torch.tensor([0.5 ** (h + 1) for h in range(n_heads)])
    i = torch.arange(n_keys - n_queries, n_keys)
    j = torch.arange(n_keys)
    return -slopes[:, None, None] * (i[:, None] - j).abs()
