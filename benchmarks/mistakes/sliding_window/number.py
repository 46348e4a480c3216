# mistake: returns 0 and 1 as numbers
import torch
def sliding_window(n_queries, n_keys, window):
    i = torch.arange(n_queries)[:, None] + n_keys - n_queries
    j = torch.arange(n_keys)[None]
    return ((j <= i) & (j > i - window)).float()
