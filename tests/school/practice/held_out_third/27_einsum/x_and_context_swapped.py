# mistake: x and context change places: queries from the context, keys and values from x
import math

from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", context, w_q)
    k = einsum("bsc,hcd->bhsd", x, w_k)
    v = einsum("bsc,hcd->bhsd", x, w_v)
    scores = einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[-1])
    weights = scores.softmax(-1)
    out = einsum("bhls,bhsd,hdc->blc", weights, v, w_o)
    return out, weights
