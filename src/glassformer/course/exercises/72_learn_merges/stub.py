from collections import Counter


def learn_merges(counts, n):
    """{"cat": 3, "hat": 2}, 1 → [("a", "t")]"""
    ...
