# mistake: writes the letter of the values differently (t for s), so that weights and values are summed separately
import math

from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("bsc,hcd->bhsd", context, w_k)
    v = einsum("bsc,hcd->bhsd", context, w_v)
    weights = (einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
    out = einsum("bhls,bhtd->bhld", weights, v)
    return einsum("bhld,hdc->blc", out, w_o), weights
