# mistake: scores multiplied by the mask
import torch
def padding_mask(lengths, length):
    return (torch.arange(length)[None, :] < lengths[:, None])[:, None, :]
def attention(q, k, v, mask):
    s = q @ k.mT / q.shape[-1] ** 0.5
    w = (s * mask).softmax(-1)
    return w @ v, w
