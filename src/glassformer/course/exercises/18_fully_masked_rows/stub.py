import math


def masked_attention(q, k, v, mask):
    """A row without any True in the mask has zero weights and a zero output."""
    ...
