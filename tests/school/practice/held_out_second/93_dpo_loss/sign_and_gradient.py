# mistake: two at once: the reference is not detached; and the references of the better and the worse answer are exchanged
import torch
import torch.nn.functional as F


def answer_log_p(logits, tokens, mask):
    log_p = logits.log_softmax(-1).gather(2, tokens[..., None]).squeeze(-1)
    return (log_p * mask).sum(-1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    margin = (better - ref_worse) - (worse - ref_better)
    return -F.logsigmoid(beta * margin).mean()
