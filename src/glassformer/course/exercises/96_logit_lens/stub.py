import torch


def logit_lens(states, gain, unembed):
    """Read every state as the last: (N, L, C), (C,), (V, C) → logits (N, L, V), ranks (N, L)"""
    ...
