# mistake: the output pattern loses h in the values, so all heads are added before w_o.
import math

from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("bsc,hcd->bhsd", context, w_k)
    v = einsum("bsc,hcd->bhsd", context, w_v)
    weights = (einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    mixed = einsum("bhls,bhsd->bld", weights, v)
    return einsum("bld,hdc->blc", mixed, w_o), weights
