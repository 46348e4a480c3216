# correct: the logarithm of a triangle of ones, log 1 = 0 and log 0 = −∞
import torch


def causal_bias(length):
    return torch.ones(length, length).tril().log()


def causal_weights(scores):
    n = scores.shape[-1]
    return torch.softmax(scores + causal_bias(n).to(dtype=scores.dtype), dim=-1)
