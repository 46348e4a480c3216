# correct: every query attends to a prefix of the keys; the mask comes from nested lists
import torch


def causal_mask(n_queries, n_keys):
    offset = n_keys - n_queries
    return torch.tensor([[j <= offset + i for j in range(n_keys)] for i in range(n_queries)])


def causal_attention(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    outs = []
    for i in range(L):
        seen = S - L + i + 1
        s = q[..., i : i + 1, :] @ k[..., :seen, :].transpose(-2, -1) / q.shape[-1] ** 0.5
        outs.append(s.softmax(-1) @ v[..., :seen, :])
    return torch.cat(outs, dim=-2)
