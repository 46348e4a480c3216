# mistake: multiplied by √D
import math, torch
def attention(q, k, v):
    s = torch.bmm(q, k.transpose(1, 2)) * math.sqrt(q.size(-1)) if q.dim() == 3 else q @ k.mT * math.sqrt(q.size(-1))
    return torch.softmax(s, -1) @ v
