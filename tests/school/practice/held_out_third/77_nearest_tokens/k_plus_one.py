# correct: sorts everything and drops the token itself from the order
import torch


def nearest(weight, token, k):
    centred = weight - weight.mean(dim=0, keepdim=True)
    lengths = centred.square().sum(1).sqrt()
    cosines = (centred @ centred[token]) / (lengths * lengths[token])
    order = torch.argsort(cosines, descending=True)
    order = order[order != token][:k]
    return cosines[order], order
