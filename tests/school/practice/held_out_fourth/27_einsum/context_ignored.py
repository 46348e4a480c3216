# mistake: ignores the context: keys and values are computed from x
from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("bsc,hcd->bhsd", x, w_k)
    v = einsum("bsc,hcd->bhsd", x, w_v)
    weights = (einsum("bhld,bhsd->bhls", q, k) * q.shape[-1] ** -0.5).softmax(-1)
    heads = einsum("bhls,bhsd->bhld", weights, v)
    return einsum("bhld,hdc->blc", heads, w_o), weights
