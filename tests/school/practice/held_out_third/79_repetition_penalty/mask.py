# correct: a mask over the vocabulary
import torch


def penalize(logits, seen, penalty):
    vocab = torch.arange(logits.shape[1])
    hit = (seen[:, :, None] == vocab).any(dim=1)
    factor = torch.where(logits > 0, 1 / penalty, float(penalty)).to(logits.dtype)
    return torch.where(hit, logits * factor, logits)
