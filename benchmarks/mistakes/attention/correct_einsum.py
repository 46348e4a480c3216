# correct: einsum and exp by hand
import torch
def attention(q, k, v):
    s = torch.einsum("...ld,...sd->...ls", q, k) * q.shape[-1] ** -0.5
    e = (s - s.max(-1, keepdim=True)[0]).exp()
    return torch.einsum("...ls,...se->...le", e / e.sum(-1, keepdim=True), v)
