# mistake: nan_to_num with a constant of 1
import torch
def masked_attention(q, k, v, mask):
    s = q @ k.mT / q.shape[-1] ** 0.5
    w = s.masked_fill(~mask, float("-inf")).softmax(-1)
    w = torch.nan_to_num(w, nan=1.0)
    return w @ v, w
