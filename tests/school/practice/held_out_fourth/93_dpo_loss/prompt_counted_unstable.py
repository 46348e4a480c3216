# mistake: two at once: the mask is ignored, and log of sigmoid overflows for large margins
import torch


def answer_log_p(logits, tokens, mask):
    logp = torch.log_softmax(logits, dim=-1)
    return torch.gather(logp, 2, tokens[:, :, None]).squeeze(2).sum(dim=1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    margin = (better - ref_better.detach()) - (worse - ref_worse.detach())
    return -torch.log(torch.sigmoid(beta * margin)).mean()
