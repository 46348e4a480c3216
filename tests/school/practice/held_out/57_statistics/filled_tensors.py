# correct: writes into preallocated tensors, entropy from lse
import torch


def statistics(q, k, chunk):
    n_queries, n_keys = len(q), len(k)
    entropy, received = q.new_empty(n_queries), q.new_zeros(n_keys)
    for start in range(0, n_queries, chunk):
        rows = slice(start, min(start + chunk, n_queries))
        scores = q[rows] @ k.mT * q.shape[1] ** -0.5
        lse = torch.logsumexp(scores, dim=1)
        weights = torch.exp(scores - lse[:, None])
        entropy[rows] = lse - torch.einsum("ij,ij->i", weights, scores)
        received.add_(weights.sum(dim=0))
    return entropy, received
