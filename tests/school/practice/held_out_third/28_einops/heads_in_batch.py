# correct: the heads are merged into the batch dimension
from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    b = q.shape[0]
    q, k, v = (rearrange(t, "b n (h d) -> (b h) n d", h=n_heads) for t in (q, k, v))
    w = einsum(q, k, "g l d, g s d -> g l s").mul(q.shape[-1] ** -0.5).softmax(-1)
    out = einsum(w, v, "g l s, g s d -> g l d")
    return rearrange(out, "(b h) l d -> b l (h d)", b=b)
