# mistake: penalised once for every occurrence
import torch


def penalize(logits, seen, penalty):
    out = logits.clone()
    for b in range(seen.shape[0]):
        for t in seen[b].tolist():
            if out[b, t] > 0:
                out[b, t] = out[b, t] / penalty
            else:
                out[b, t] = out[b, t] * penalty
    return out
