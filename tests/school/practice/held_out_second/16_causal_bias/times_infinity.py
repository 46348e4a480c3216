# mistake: multiplies a triangle of ones by −∞, so that 0 · ∞ gives NaN
import math

import torch


def causal_bias(length):
    return torch.ones(length, length).triu(1) * -math.inf


def causal_weights(scores):
    return (scores + causal_bias(scores.shape[-1]).to(scores)).softmax(-1)
