# mistake: lengths are compared with 1-based places
import torch
def padding_mask(lengths, length):
    places = torch.arange(1, length + 1)
    return (places[None, :] < lengths[:, None])[:, None, :]
def attention(q, k, v, mask):
    s = q @ k.mT / q.shape[-1] ** 0.5
    w = s.masked_fill(mask == False, float("-inf")).softmax(-1)
    return w @ v, w
