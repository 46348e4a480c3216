# mistake: the sum over real targets is divided by the number of all targets
import torch


def shift(tokens):
    n = tokens.shape[1]
    return tokens.narrow(1, 0, n - 1), tokens.narrow(1, 1, n - 1)


def loss(logits, targets, pad):
    logp = torch.log_softmax(logits, dim=-1)
    picked = logp.gather(-1, targets[..., None])[..., 0]
    picked = torch.where(targets == pad, torch.zeros_like(picked), picked)
    return -picked.mean()
