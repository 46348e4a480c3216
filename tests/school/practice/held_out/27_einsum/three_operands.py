# correct: einsum with three and four operands, and other letters
import torch


def multi_head(x, context, w_q, w_k, w_v, w_o):
    head_width = w_q.size(2)
    scores = torch.einsum("nic,hcd,njm,hmd->nhij", x, w_q, context, w_k)
    weights = torch.softmax(scores / head_width**0.5, dim=3)
    out = torch.einsum("nhij,njm,hmd,hdc->nic", weights, context, w_v, w_o)
    return out, weights
