"""How good a search is: where in each ranking the right document is found."""

from torch import Tensor


def ranks(scores: Tensor, right: Tensor) -> Tensor:
    """The rank of the right document of each query, 1 for the best: (Q, N), (Q,) → (Q,)"""
    own = scores.gather(1, right[:, None])  # (Q, 1)
    return (scores >= own).sum(dim=1)  # what scores as much counts as before it


def recall_at_k(scores: Tensor, right: Tensor, k: int) -> float:
    """How many queries have the right document among their k best, as a share"""
    return float((ranks(scores, right) <= k).double().mean())


def mean_reciprocal_rank(scores: Tensor, right: Tensor) -> float:
    """The mean of 1 / rank over the queries"""
    return float((1 / ranks(scores, right).double()).mean())
