# correct: keeps the layout (B, L, H, D) until the weights
import torch


def multi_head(x, context, w_q, w_k, w_v, w_o):
    q = torch.einsum("blc,hcd->blhd", x, w_q)
    k = torch.einsum("bsc,hcd->bshd", context, w_k)
    v = torch.einsum("bsc,hcd->bshd", context, w_v)
    q = q * w_q.shape[-1] ** -0.5
    weights = torch.einsum("blhd,bshd->bhls", q, k).softmax(-1)
    out = torch.einsum("bhls,bshd->blhd", weights, v)
    return torch.einsum("blhd,hdc->blc", out, w_o), weights
