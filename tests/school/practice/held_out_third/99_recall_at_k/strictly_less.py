# mistake: recall counts ranks smaller than k
import torch


def ranks(scores, right):
    own = scores.gather(1, right[:, None])
    return (scores >= own).sum(dim=1)


def recall_at_k(scores, right, k):
    return (ranks(scores, right) < k).float().mean()


def mean_reciprocal_rank(scores, right):
    return (1.0 / ranks(scores, right)).mean()
