import math


def scaled_scores(q, k):
    """scores = q kᵀ / √D"""
    ...
