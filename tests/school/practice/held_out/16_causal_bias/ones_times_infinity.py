# mistake: multiplies a triangle of ones by −∞, so the zeros become NaN.
import torch


def causal_bias(length):
    return torch.triu(torch.ones(length, length), diagonal=1) * float("-inf")


def causal_weights(scores):
    return (scores + causal_bias(scores.shape[-1]).to(scores)).softmax(dim=-1)
