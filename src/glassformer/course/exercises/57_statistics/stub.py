import math

import torch


def statistics(q, k, chunk):
    """entropy_i = −Σ_j w_ij log w_ij,  received_j = Σ_i w_ij, with w = softmax(q kᵀ / √D)"""
    ...
