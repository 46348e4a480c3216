# mistake: the reference is left out of the margin
import torch
import torch.nn.functional as F


def answer_log_p(logits, tokens, mask):
    lp = logits.log_softmax(-1).gather(2, tokens.unsqueeze(-1)).squeeze(-1)
    return lp.masked_fill(~mask, 0.0).sum(-1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    return -F.logsigmoid(beta * (better - worse)).mean()
