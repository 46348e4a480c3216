# mistake: the bias is float32, so that scores of lower precision come out in float32
import torch


def causal_bias(length):
    bias = torch.zeros(length, length)
    rows, columns = torch.triu_indices(length, length, offset=1)
    bias[rows, columns] = -torch.inf
    return bias


def causal_weights(scores):
    bias = causal_bias(scores.shape[-1])
    return torch.softmax(scores + bias, dim=-1)
