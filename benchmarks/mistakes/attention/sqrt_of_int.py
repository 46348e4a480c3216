# mistake: torch.sqrt is given an int
import torch
def attention(q, k, v):
    s = q @ k.mT / torch.sqrt(q.shape[-1])
    return s.softmax(-1) @ v
