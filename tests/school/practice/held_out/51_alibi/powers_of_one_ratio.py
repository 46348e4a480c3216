# correct: slopes as powers of one ratio, einsum for the outer product
import torch


def alibi(n_heads, n_queries, n_keys):
    ratio = 2 ** (-8 / n_heads)
    slopes = torch.tensor([ratio ** (h + 1) for h in range(n_heads)], dtype=torch.float32)
    keys = torch.arange(n_keys, dtype=torch.float32)
    distance = torch.cdist(keys[n_keys - n_queries :, None], keys[:, None], p=1)
    return torch.einsum("h,ls->hls", slopes, distance).neg()
