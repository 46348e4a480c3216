# correct: torch.special.entr, results written into tensors made beforehand
import torch


def statistics(q, k, chunk):
    L, D = q.shape
    entropy = q.new_empty(L)
    received = q.new_zeros(k.shape[0])
    for first in range(0, L, chunk):
        rows = slice(first, min(first + chunk, L))
        w = torch.softmax((q[rows] * D**-0.5) @ k.transpose(0, 1), dim=1)
        entropy[rows] = torch.special.entr(w).sum(dim=1)
        received.add_(w.sum(dim=0))
    return entropy, received
