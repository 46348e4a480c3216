# mistake: triu without diagonal=1 hides the diagonal too.
import math

import torch


def causal_bias(length):
    return torch.full((length, length), -math.inf).triu()


def causal_weights(scores):
    return (scores + causal_bias(scores.shape[-1]).to(scores)).softmax(dim=-1)
