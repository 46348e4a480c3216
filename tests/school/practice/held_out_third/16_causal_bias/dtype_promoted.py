# mistake: the float32 bias promotes bfloat16 scores, so the result does not keep the dtype
import math

import torch


def causal_bias(length):
    return torch.full((length, length), -math.inf).triu(diagonal=1)


def causal_weights(scores):
    n = scores.shape[-1]
    return torch.softmax(scores + causal_bias(n), dim=-1)
