# mistake: shifts logits and tokens by one against each other, although logits[:, i] already predicts tokens[:, i]
import torch
import torch.nn.functional as F


def answer_log_p(logits, tokens, mask):
    logits, tokens, mask = logits[:, :-1], tokens[:, 1:], mask[:, 1:]
    log_p = logits.log_softmax(-1).gather(2, tokens[..., None]).squeeze(-1)
    return (log_p * mask).sum(-1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    margin = (better - ref_better.detach()) - (worse - ref_worse.detach())
    return -F.logsigmoid(beta * margin).mean()
