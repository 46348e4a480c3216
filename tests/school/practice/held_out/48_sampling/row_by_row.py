# correct: works row by row with Python lists
import math

import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    result = torch.zeros_like(logits)
    for b, row in enumerate(logits):
        scaled = [x / temperature for x in row.tolist()]
        ranked = sorted(range(len(scaled)), key=lambda t: scaled[t], reverse=True)
        kept = ranked if top_k is None else ranked[:top_k]
        e = {t: math.exp(scaled[t] - scaled[ranked[0]]) for t in kept}
        if top_p is not None:
            everything, reached, nucleus = sum(e.values()), 0.0, []
            for t in kept:
                nucleus.append(t)
                reached += e[t] / everything
                if reached >= top_p:
                    break
            kept = nucleus
        total = sum(e[t] for t in kept)
        for t in kept:
            result[b, t] = e[t] / total
    return result
