# correct: a loop over the source words, so that (B, L, S, D) never exists
import torch


def additive_attention(hidden, context, w_q, w_k, v, mask):
    q = hidden @ w_q
    columns = []
    for j in range(context.shape[1]):
        k = context[:, j] @ w_k
        columns.append(torch.einsum("bld,d->bl", torch.tanh(q + k[:, None]), v))
    s = torch.stack(columns, dim=2)
    s = s.masked_fill(mask.logical_not()[:, None, :], float("-inf"))
    weights = torch.softmax(s, dim=-1)
    return torch.einsum("bls,bse->ble", weights, context), weights
