# correct: writes softmax by hand and divides once, after the product with the values
import torch


def attention(q, k, v):
    s = q @ k.mT * q.shape[-1] ** -0.5
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return (e @ v) / e.sum(-1, keepdim=True)
