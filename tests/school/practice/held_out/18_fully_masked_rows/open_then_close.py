# correct: opens empty rows before softmax and sets their weights to zero afterwards
import math


def masked_attention(q, k, v, mask):
    anything = mask.any(-1, keepdim=True)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~(mask | ~anything), -math.inf)
    weights = scores.softmax(-1) * anything
    return weights @ v, weights
