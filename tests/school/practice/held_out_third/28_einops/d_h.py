# mistake: (d h) instead of (h d) in all patterns
import math

from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    q, k, v = (rearrange(t, "b l (d h) -> b h l d", h=n_heads) for t in (q, k, v))
    w = (einsum(q, k, "b h l d, b h s d -> b h l s") / math.sqrt(q.shape[-1])).softmax(-1)
    out = einsum(w, v, "b h l s, b h s d -> b h l d")
    return rearrange(out, "b h l d -> b l (d h)")
