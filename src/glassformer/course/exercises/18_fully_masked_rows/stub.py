import math


def masked_attention(q, k, v, mask):
    """A row of the mask without any True gives weights and output of zero."""
    ...
