# mistake: tells rearrange that d, the width of a head, is n_heads.
import math

from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    q, k, v = (rearrange(t, "b l (h d) -> b h l d", d=n_heads) for t in (q, k, v))
    scores = einsum(q, k, "b h l d, b h s d -> b h l s") / math.sqrt(q.shape[-1])
    out = einsum(scores.softmax(dim=-1), v, "b h l s, b h s d -> b h l d")
    return rearrange(out, "b h l d -> b l (h d)")
