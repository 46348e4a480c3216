# mistake: a token seen in any text is penalised in all
import torch


def penalize(logits, seen, penalty):
    ids = seen.unique()
    out = logits.clone()
    part = out[:, ids]
    out[:, ids] = torch.where(part > 0, part / penalty, part * penalty)
    return out
