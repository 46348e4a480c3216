# mistake: two at once: the best has rank 0, and documents with the same score do not count as before it
import torch


def ranks(scores, right):
    mine = scores[torch.arange(len(right)), right]
    return (scores > mine[:, None]).sum(1)


def recall_at_k(scores, right, k):
    return (ranks(scores, right) <= k).double().mean()


def mean_reciprocal_rank(scores, right):
    return (1 / (ranks(scores, right).double())).mean()
