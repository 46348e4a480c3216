# mistake: takes the logarithm of sigmoid, which is −∞ for margins far below 0
import torch


def answer_log_p(logits, tokens, mask):
    log_p = torch.log_softmax(logits, dim=-1)
    log_p = torch.gather(log_p, -1, tokens.unsqueeze(-1)).squeeze(-1)
    return log_p.masked_fill(~mask, 0).sum(dim=1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    margin = (better - ref_better.detach()) - (worse - ref_worse.detach())
    return -torch.log(torch.sigmoid(beta * margin)).mean()
