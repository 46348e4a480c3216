# mistake: penalizes a token again for each time that it occurred
import torch


def penalize(logits, seen, penalty):
    out = logits.clone()
    for b in range(seen.shape[0]):
        for t in seen[b]:
            if out[b, t] > 0:
                out[b, t] /= penalty
            else:
                out[b, t] *= penalty
    return out
