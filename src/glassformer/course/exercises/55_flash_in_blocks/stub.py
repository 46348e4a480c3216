import math

import torch


def flash_attention(q, k, v, block):
    """out = softmax(q kᵀ / √D) v and lse, one block of keys at a time"""
    ...
