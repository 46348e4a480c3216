# mistake: gives einops.einsum the pattern first, as torch.einsum takes it.
import math

from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    q = rearrange(q, "b l (h d) -> b h l d", h=n_heads)
    k = rearrange(k, "b s (h d) -> b h s d", h=n_heads)
    v = rearrange(v, "b s (h d) -> b h s d", h=n_heads)
    scores = einsum("b h l d, b h s d -> b h l s", q, k) / math.sqrt(q.shape[-1])
    out = einsum("b h l s, b h s d -> b h l d", scores.softmax(-1), v)
    return rearrange(out, "b h l d -> b l (h d)")
