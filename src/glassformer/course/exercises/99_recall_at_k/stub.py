import torch


def ranks(scores, right):
    """The rank of the right document of each query, 1 for the best: (Q, N), (Q,) → (Q,)"""
    ...


def recall_at_k(scores, right, k):
    """How many queries have the right document among their k best, as a share"""
    ...


def mean_reciprocal_rank(scores, right):
    """The mean of 1 / rank over the queries"""
    ...
