# mistake: computes keys from the context, but the values from x
import math

from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("bsc,hcd->bhsd", context, w_k)
    v = einsum("bsc,hcd->bhsd", x, w_v)
    weights = (einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
    out = einsum("bhls,bhsd->bhld", weights, v)
    return einsum("bhld,hdc->blc", out, w_o), weights
