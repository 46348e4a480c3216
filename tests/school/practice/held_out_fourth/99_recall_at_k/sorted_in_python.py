# correct: sorted in Python, where ties put the right document last
import torch


def ranks(scores, right):
    result = []
    for row, wanted in zip(scores.tolist(), right.tolist()):
        order = sorted(range(len(row)), key=lambda d: (-row[d], d == wanted))
        result.append(order.index(wanted) + 1)
    return torch.tensor(result)


def recall_at_k(scores, right, k):
    places = ranks(scores, right).tolist()
    return sum(place <= k for place in places) / len(places)


def mean_reciprocal_rank(scores, right):
    places = ranks(scores, right).tolist()
    return sum(1 / place for place in places) / len(places)
