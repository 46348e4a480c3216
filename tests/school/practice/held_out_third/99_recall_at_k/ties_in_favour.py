# mistake: ties are decided in favour of the right document
import torch


def ranks(scores, right):
    own = scores.gather(1, right[:, None])
    return (scores > own).sum(dim=1) + 1


def recall_at_k(scores, right, k):
    return (ranks(scores, right) <= k).double().mean()


def mean_reciprocal_rank(scores, right):
    return ranks(scores, right).double().reciprocal().mean()
