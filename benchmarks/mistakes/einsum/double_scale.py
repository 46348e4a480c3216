# mistake: scale applied to q and k and scores
import torch
def multi_head(x, context, w_q, w_k, w_v, w_o):
    d = w_q.shape[-1] ** 0.5
    q = torch.einsum("blc,hcd->bhld", x, w_q) / d
    k = torch.einsum("blc,hcd->bhld", context, w_k)
    v = torch.einsum("blc,hcd->bhld", context, w_v)
    w = (torch.einsum("bhid,bhjd->bhij", q, k) / d).softmax(-1)
    return torch.einsum("bhij,bhjd,hdc->bic", w, v, w_o), w
