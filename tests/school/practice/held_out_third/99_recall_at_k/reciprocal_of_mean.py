# mistake: the reciprocal of the mean rank instead of the mean of the reciprocals
import torch


def ranks(scores, right):
    own = scores[torch.arange(len(right)), right].unsqueeze(1)
    return (scores >= own).sum(dim=1)


def recall_at_k(scores, right, k):
    return (ranks(scores, right) <= k).float().mean()


def mean_reciprocal_rank(scores, right):
    return 1 / ranks(scores, right).float().mean()
