# mistake: subtracts the mean with -= and thereby changes the table of the caller
import torch


def nearest(weight, token, k):
    weight -= weight.mean(dim=0)
    unit = weight / weight.norm(dim=1, keepdim=True)
    cosines = unit @ unit[token]
    cosines[token] = -torch.inf
    return tuple(cosines.topk(k))
