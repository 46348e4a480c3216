# correct: sorts all cosines, drops the token itself by a boolean index and takes the first k
import torch


def nearest(weight, token, k):
    centred = weight - weight.mean(0)
    lengths = torch.linalg.vector_norm(centred, dim=1)
    cosines = (centred * centred[token]).sum(1) / (lengths * lengths[token])
    order = torch.argsort(cosines, descending=True)
    order = order[order != token][:k]
    return cosines[order], order
