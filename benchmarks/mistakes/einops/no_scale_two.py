# mistake: divides by D instead of √D
from einops import rearrange
def multi_head(q, k, v, n_heads):
    q, k, v = [rearrange(t, "b l (h d) -> b h l d", h=n_heads) for t in (q, k, v)]
    w = (q @ k.mT / q.shape[-1]).softmax(-1)
    return rearrange(w @ v, "b h l d -> b l (h d)")
