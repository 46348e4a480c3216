# mistake: what the heads write is averaged instead of summed
import math

from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("bsc,hcd->bhsd", context, w_k)
    v = einsum("bsc,hcd->bhsd", context, w_v)
    weights = (einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    heads = einsum("bhls,bhsd->bhld", weights, v)
    out = einsum("bhld,hdc->bhlc", heads, w_o).mean(dim=1)
    return out, weights
