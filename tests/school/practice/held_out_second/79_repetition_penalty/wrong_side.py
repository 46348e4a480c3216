# mistake: two at once: multiplies the positive and divides the negative logits; and does so for the whole vocabulary, not only seen tokens
import torch


def penalize(logits, seen, penalty):
    return torch.where(logits > 0, logits * penalty, logits / penalty)
