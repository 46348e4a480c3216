# mistake: negative logits are divided too, which makes them more likely
import torch


def penalize(logits, seen, penalty):
    return logits.scatter(1, seen, logits.gather(1, seen) / penalty)
