# correct: plain Python over lists
import torch


def ranks(scores, right):
    out = []
    for row, r in zip(scores.tolist(), right.tolist()):
        out.append(sum(s >= row[r] for s in row))
    return torch.tensor(out)


def recall_at_k(scores, right, k):
    found = [r <= k for r in ranks(scores, right).tolist()]
    return torch.tensor(sum(found) / len(found))


def mean_reciprocal_rank(scores, right):
    rank = ranks(scores, right).tolist()
    return torch.tensor(sum(1 / r for r in rank) / len(rank))
