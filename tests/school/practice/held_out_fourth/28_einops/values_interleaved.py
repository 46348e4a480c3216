# mistake: the values alone are split the other way round, (d h)
import math

from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    q = rearrange(q, "b l (h d) -> b h l d", h=n_heads)
    k = rearrange(k, "b s (h d) -> b h s d", h=n_heads)
    v = rearrange(v, "b s (d h) -> b h s d", h=n_heads)
    scores = einsum(q, k, "b h l d, b h s d -> b h l s") / math.sqrt(q.shape[-1])
    out = einsum(scores.softmax(dim=-1), v, "b h l s, b h s d -> b h l d")
    return rearrange(out, "b h l d -> b l (h d)")
