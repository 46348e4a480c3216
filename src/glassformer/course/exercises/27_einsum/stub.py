import math

from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    """weights[b,h,l,s] = softmax_s( Σ_d q[b,h,l,d] · k[b,h,s,d] / √D )

    out[b,l,c] = Σ_h,d ( Σ_s weights[b,h,l,s] · v[b,h,s,d] ) · w_o[h,d,c]
    """
    ...
