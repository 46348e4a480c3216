# correct: compared in logits: z >= max + log(min_p)
import math

import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    z = logits / temperature
    z = z - z.amax(dim=-1, keepdim=True)
    bar = math.log(min_p) if min_p > 0 else -math.inf
    return z.masked_fill(z < bar, -math.inf).softmax(dim=-1)
