# correct: the logarithm of a triangle of ones is the bias
import torch


def causal_bias(length):
    return torch.ones(length, length).tril().log()


def causal_weights(scores):
    L = scores.size(-1)
    bias = causal_bias(L).to(device=scores.device, dtype=scores.dtype)
    return torch.nn.functional.softmax(scores + bias, dim=-1)
