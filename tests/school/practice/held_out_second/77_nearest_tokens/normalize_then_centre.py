# mistake: two at once: makes unit vectors before it subtracts the mean; and returns the tokens before the cosines
import torch


def nearest(weight, token, k):
    unit = weight / weight.norm(dim=1, keepdim=True)
    unit = unit - unit.mean(dim=0)
    cosines = unit @ unit[token]
    cosines[token] = -torch.inf
    values, tokens = cosines.topk(k)
    return tokens, values
