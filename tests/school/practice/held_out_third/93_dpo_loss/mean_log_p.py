# mistake: the log-probability of an answer is the mean over its tokens
import torch
import torch.nn.functional as F


def answer_log_p(logits, tokens, mask):
    lp = logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]
    return (lp * mask).sum(1) / mask.sum(1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    margin = (better - ref_better.detach()) - (worse - ref_worse.detach())
    return -F.logsigmoid(beta * margin).mean()
