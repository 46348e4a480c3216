# mistake: -1e9 instead of minus infinity
import torch


def causal_bias(length):
    return torch.triu(torch.full((length, length), -1e9), diagonal=1)


def causal_weights(scores):
    bias = causal_bias(scores.shape[-1]).to(scores.dtype)
    return (scores + bias).softmax(dim=-1)
