# mistake: two: no scale, and the mask applied after softmax
import torch
def padding_mask(lengths, length):
    return (torch.arange(length)[None, :] < lengths[:, None])[:, None, :]
def attention(q, k, v, mask):
    w = (q @ k.mT).softmax(-1)
    w = w * mask
    return w @ v, w
