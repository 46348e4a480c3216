# mistake: log of sigmoid, which is minus infinity for large margins
import torch


def answer_log_p(logits, tokens, mask):
    lp = logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]
    return torch.where(mask, lp, 0.0).sum(1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    m = (better - ref_better.detach()) - (worse - ref_worse.detach())
    return -torch.sigmoid(beta * m).log().mean()
