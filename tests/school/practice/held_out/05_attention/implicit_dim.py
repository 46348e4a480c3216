# mistake: F.softmax without dim guesses a dimension, and guesses wrong.
import math

import torch
import torch.nn.functional as F


def attention(q, k, v):
    d_k = q.size(-1)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = F.softmax(scores)
    return torch.matmul(p_attn, v)
