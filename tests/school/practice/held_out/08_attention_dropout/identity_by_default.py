# correct: nn.Identity takes the place of a missing dropout
import math

from torch import nn


def attention(q, k, v, dropout=None):
    drop = nn.Identity() if dropout is None else dropout
    weights = nn.functional.softmax(q @ k.mT / math.sqrt(k.size(-1)), dim=-1)
    return drop(weights) @ v, weights
