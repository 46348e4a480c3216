# mistake: the mask has a dimension too many, (B, 1, 1, length), as for several heads.
import math

import torch


def padding_mask(lengths, length):
    mask = torch.arange(length)[None, :] < lengths[:, None]
    return mask.unsqueeze(1).unsqueeze(2)


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
