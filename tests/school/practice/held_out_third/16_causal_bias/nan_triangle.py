# mistake: ones times minus infinity: 0 times infinity is NaN below the diagonal
import math

import torch


def causal_bias(length):
    return torch.ones(length, length).triu(1) * -math.inf


def causal_weights(scores):
    return (scores + causal_bias(scores.shape[-1]).to(scores)).softmax(-1)
