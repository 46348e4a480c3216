# mistake: heads in reverse order
import torch
def alibi(n_heads, n_queries, n_keys):
    m = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    m = m.flip(0)
    i = torch.arange(n_keys - n_queries, n_keys)[:, None]
    j = torch.arange(n_keys)[None]
    return -m[:, None, None] * (i - j).abs()
