# mistake: tril in place of triu hides the past and shows the future.
import math

import torch


def causal_bias(length):
    return torch.full((length, length), -math.inf).tril(diagonal=-1)


def causal_weights(scores):
    bias = causal_bias(scores.shape[-1]).to(scores.dtype)
    return (scores + bias).softmax(dim=-1)
