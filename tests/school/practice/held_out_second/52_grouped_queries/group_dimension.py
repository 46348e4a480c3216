# correct: a dimension for the groups and einsum, without copies
import torch


def grouped_attention(q, k, v):
    B, H, L, D = q.shape
    K = k.shape[1]
    grouped = q.reshape(B, K, H // K, L, D) / D**0.5
    weights = torch.einsum("bkgld,bksd->bkgls", grouped, k).softmax(dim=-1)
    return torch.einsum("bkgls,bksd->bkgld", weights, v).reshape(B, H, L, D)
