# correct: keys and values at once, upper-case letters, the last two products in one einsum
import torch
from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    D = w_q.shape[2]
    q = einsum("BLC,HCD->BLHD", x, w_q * D**-0.5)
    k, v = einsum("BSC,KHCD->KBSHD", context, torch.stack((w_k, w_v)))
    weights = torch.softmax(einsum("BLHD,BSHD->BHLS", q, k), dim=-1)
    return einsum("BHLS,BSHD,HDC->BLC", weights, v, w_o), weights
