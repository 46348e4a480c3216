# correct: builds the bias with torch.where from positions and casts it with type_as
import torch


def causal_bias(length):
    i = torch.arange(length)
    ahead = i[None, :] > i[:, None]
    return torch.where(ahead, torch.tensor(-torch.inf), torch.tensor(0.0))


def causal_weights(scores):
    bias = causal_bias(scores.shape[-1]).type_as(scores)
    return torch.softmax(scores + bias, dim=-1)
