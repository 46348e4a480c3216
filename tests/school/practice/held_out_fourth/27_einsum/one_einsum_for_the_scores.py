# correct: a single einsum of four operands gives the scores
from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    scores = einsum("blc,hcd,bse,hed->bhls", x, w_q, context, w_k)
    weights = (scores / w_q.shape[2] ** 0.5).softmax(dim=3)
    out = einsum("bhls,bsc,hcd,hde->ble", weights, context, w_v, w_o)
    return out, weights
