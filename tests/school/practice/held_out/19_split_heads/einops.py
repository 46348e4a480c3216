# correct: einops does it in one pattern
from einops import rearrange


def split_heads(x, n_heads):
    return rearrange(x, "batch length (heads width) -> batch heads length width", heads=n_heads)
