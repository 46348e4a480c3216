# mistake: splits as (h d) but merges as (d h).
from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    q, k, v = (rearrange(t, "b l (h d) -> b h l d", h=n_heads) for t in (q, k, v))
    scores = einsum(q, k, "b h i d, b h j d -> b h i j") * q.shape[-1] ** -0.5
    out = einsum(scores.softmax(dim=-1), v, "b h i j, b h j d -> b h i d")
    return rearrange(out, "b h l d -> b l (d h)")
