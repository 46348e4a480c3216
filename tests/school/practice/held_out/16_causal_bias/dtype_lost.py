# mistake: adds the float32 bias to scores of a lower precision, so the result is float32.
import math

import torch


def causal_bias(length):
    return torch.full((length, length), -math.inf).triu(diagonal=1)


def causal_weights(scores):
    return torch.softmax(scores + causal_bias(scores.shape[-1]), dim=-1)
