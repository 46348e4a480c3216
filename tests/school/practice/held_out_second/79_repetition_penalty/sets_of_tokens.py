# correct: Python loop over the set of tokens of each text on a clone
import torch


def penalize(logits, seen, penalty):
    result = logits.clone()
    for row, tokens in enumerate(seen.tolist()):
        for token in set(tokens):
            old = logits[row, token]
            result[row, token] = old / penalty if old > 0 else old * penalty
    return result
