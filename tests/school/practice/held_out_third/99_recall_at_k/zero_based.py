# mistake: ranks begin at 0, and recall compares with <= k all the same
import torch


def ranks(scores, right):
    own = scores.gather(1, right[:, None])
    return (scores >= own).sum(1) - 1


def recall_at_k(scores, right, k):
    return (ranks(scores, right) <= k).float().mean()


def mean_reciprocal_rank(scores, right):
    return (1 / (ranks(scores, right) + 1).float()).mean()
