import math


def weight(q, k, lse, b, h, i, j):
    """exp(q_i · k_j / √D − lse_i)"""
    ...
