# correct: a dictionary of the places that follow each token, filled while reading
import torch


def induction_mask(tokens):
    names = tokens.tolist()
    mask = torch.zeros(len(names), len(names), dtype=torch.bool)
    after = {}
    for i, name in enumerate(names):
        if i:
            after.setdefault(names[i - 1], []).append(i)
        for j in after.get(name, ()):
            mask[i, j] = True
    return mask
