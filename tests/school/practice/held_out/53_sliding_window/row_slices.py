# correct: fills a slice of each row
import torch


def sliding_window(n_queries, n_keys, window):
    mask = torch.zeros((n_queries, n_keys), dtype=torch.bool)
    for i in range(n_queries):
        last = n_keys - n_queries + i
        mask[i, max(0, last - window + 1) : last + 1] = True  # 自己和前面的 window − 1 个
    return mask
