# mistake: loss with the wrong sign
import torch.nn.functional as F
def shift(tokens):
    return tokens[:, :-1], tokens[:, 1:]
def loss(logits, targets, pad):
    lp = logits.log_softmax(-1).gather(-1, targets.clamp(min=0)[..., None]).squeeze(-1)
    keep = targets != pad
    return (lp * keep).sum() / keep.sum()
