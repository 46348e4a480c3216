import math

import torch


def padding_mask(lengths, length):
    """mask[b, 0, j] = j < lengths[b]"""
    ...


def attention(q, k, v, mask):
    """weights = softmax(q kᵀ / √D where mask is True, −∞ elsewhere); returns (out, weights)"""
    ...
