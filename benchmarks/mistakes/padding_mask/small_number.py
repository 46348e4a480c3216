# mistake: −1e-9 instead of −1e9
import torch
def padding_mask(lengths, length):
    return (torch.arange(length)[None, :] < lengths[:, None])[:, None, :]
def attention(q, k, v, mask):
    s = q @ k.mT / q.shape[-1] ** 0.5
    s = s.masked_fill(~mask, -1e-9)
    w = s.softmax(-1)
    return w @ v, w
