# mistake: two at once: the given logits are changed, and negative logits are divided, too
import torch


def penalize(logits, seen, penalty):
    for row, tokens in zip(logits, seen):
        for token in set(tokens.tolist()):
            row[token] /= penalty
    return logits
