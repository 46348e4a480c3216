# mistake: k.T turns all dimensions
import torch
def attention(q, k, v):
    s = torch.matmul(q, k.permute(2, 1, 0) if k.dim() == 3 else k.mT) / q.shape[-1] ** 0.5
    return s.softmax(-1) @ v
