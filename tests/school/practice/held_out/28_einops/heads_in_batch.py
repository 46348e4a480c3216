# correct: folds the heads into the batch and uses @ for the products
from einops import rearrange


def multi_head(q, k, v, n_heads):
    q, k, v = (rearrange(t, "b n (h d) -> (b h) n d", h=n_heads) for t in (q, k, v))
    scores = q @ rearrange(k, "g s d -> g d s")
    weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
    return rearrange(weights @ v, "(b h) n d -> b n (h d)", h=n_heads)
