# mistake: penalizes a token in all texts of the batch if it occurred in any of them
import torch


def penalize(logits, seen, penalty):
    logits = logits.clone()
    ids = seen.unique()
    picked = logits[:, ids]
    logits[:, ids] = torch.where(picked > 0, picked / penalty, picked * penalty)
    return logits
