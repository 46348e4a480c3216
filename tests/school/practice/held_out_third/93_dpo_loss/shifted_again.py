# mistake: tokens are shifted by one although logits[:, i] predicts tokens[:, i] already
import torch
import torch.nn.functional as F


def answer_log_p(logits, tokens, mask):
    lp = logits[:, :-1].log_softmax(-1).gather(2, tokens[:, 1:, None])[..., 0]
    return torch.where(mask[:, 1:], lp, 0.0).sum(1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    m = (better - ref_better.detach()) - (worse - ref_worse.detach())
    return -F.logsigmoid(beta * m).mean()
