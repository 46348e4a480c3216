# mistake: divides after softmax
import torch
def attention(q, k, v):
    w = torch.softmax(q @ k.transpose(-2, -1), dim=-1) / q.size(-1) ** 0.5
    return w @ v
