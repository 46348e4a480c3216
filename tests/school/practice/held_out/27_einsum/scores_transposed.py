# mistake: the scores come out as (S, L), and softmax runs over the queries.
from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = einsum("blc,hcd->bhld", x, w_q)
    k = einsum("bsc,hcd->bhsd", context, w_k)
    v = einsum("bsc,hcd->bhsd", context, w_v)
    scores = einsum("bhld,bhsd->bhsl", q, k) / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    heads = einsum("bhsl,bhsd->bhld", weights, v)
    return einsum("bhld,hdc->blc", heads, w_o), weights
