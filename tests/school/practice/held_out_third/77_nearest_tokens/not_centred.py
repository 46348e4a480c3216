# mistake: the mean of all rows is not subtracted
import torch


def nearest(weight, token, k):
    unit = torch.nn.functional.normalize(weight, dim=-1)
    cos = unit @ unit[token]
    cos[token] = -torch.inf
    top = cos.topk(k)
    return top.values, top.indices
