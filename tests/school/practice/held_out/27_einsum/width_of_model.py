# mistake: two at once: keys and values are computed from x, and the scale is √C.
import math

from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("blc,hcd->bhld", x, w_k)
    v = einsum("blc,hcd->bhld", x, w_v)
    weights = (einsum("bhld,bhsd->bhls", q, k) / math.sqrt(x.shape[-1])).softmax(dim=-1)
    heads = einsum("bhls,bhsd->bhld", weights, v)
    return einsum("bhld,hdc->blc", heads, w_o), weights
