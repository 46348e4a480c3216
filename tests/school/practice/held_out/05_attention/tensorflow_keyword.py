# mistake: passes TensorFlow's transpose_b to torch.matmul, which does not know it.
import torch


def attention(q, k, v):
    dk = float(k.shape[-1])
    logits = torch.matmul(q, k, transpose_b=True) / dk**0.5
    weights = torch.softmax(logits, dim=-1)
    return torch.matmul(weights, v)
