# correct: a generator of chunks, entropy by torch.special.entr
import torch


def statistics(q, k, chunk):
    entropies, received = [], k.new_zeros(len(k))
    for start in range(0, len(q), chunk):
        rows = torch.softmax(q[start : start + chunk] @ k.T / k.shape[1] ** 0.5, dim=1)
        entropies += [torch.special.entr(rows).sum(1)]
        received += rows.sum(0)
    return torch.cat(entropies), received
