# correct: takes the root of a tensor, with swapaxes in place of transpose
import torch


def scaled_scores(q, k):
    d = torch.tensor(q.size(-1), dtype=q.dtype)
    return torch.matmul(q, k.swapaxes(-1, -2)) / torch.sqrt(d)
