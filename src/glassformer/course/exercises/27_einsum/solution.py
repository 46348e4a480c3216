"""Every line is a formula, and no dimension is ever transposed."""

import math

from torch import Tensor, einsum


def multi_head(
    x: Tensor, context: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor
) -> tuple[Tensor, Tensor]:
    """weights[b,h,l,s] = softmax_s( Σ_d q[b,h,l,d] · k[b,h,s,d] / √D )

    out[b,l,c] = Σ_h,d ( Σ_s weights[b,h,l,s] · v[b,h,s,d] ) · w_o[h,d,c]
    """
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("bsc,hcd->bhsd", context, w_k)
    v = einsum("bsc,hcd->bhsd", context, w_v)
    scores = einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[-1])
    weights = scores.softmax(dim=-1)
    out = einsum("bhls,bhsd->bhld", weights, v)
    # Heads and width are summed over at once: each head writes into the same C numbers.
    return einsum("bhld,hdc->blc", out, w_o), weights
