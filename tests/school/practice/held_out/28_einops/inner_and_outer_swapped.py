# mistake: splits the width as (d h), so the heads are interleaved; the merge is interleaved alike.
import math

from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    q, k, v = (rearrange(t, "b l (d h) -> b h l d", h=n_heads) for t in (q, k, v))
    scores = einsum(q, k, "b h l d, b h s d -> b h l s") / math.sqrt(q.shape[-1])
    out = einsum(scores.softmax(dim=-1), v, "b h l s, b h s d -> b h l d")
    return rearrange(out, "b h l d -> b l (d h)")
