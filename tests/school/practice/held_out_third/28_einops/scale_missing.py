# mistake: the scores are not scaled
from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    split = "b l (h d) -> b h l d"
    q, k, v = rearrange(q, split, h=n_heads), rearrange(k, split, h=n_heads), rearrange(v, split, h=n_heads)
    weights = einsum(q, k, "b h i d, b h j d -> b h i j").softmax(dim=-1)
    return rearrange(einsum(weights, v, "b h i j, b h j d -> b h i d"), "b h l d -> b l (h d)")
