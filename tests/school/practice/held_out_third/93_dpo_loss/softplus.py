# correct: softplus of the negative margin; one-hot products in the place of gather
import torch
import torch.nn.functional as F


def answer_log_p(logits, tokens, mask):
    chosen = F.one_hot(tokens, logits.shape[-1]).bool()
    log_p = (logits - logits.logsumexp(-1, keepdim=True)).masked_fill(~chosen, 0.0).sum(-1)
    return (log_p.masked_fill(mask.logical_not(), 0.0)).sum(dim=1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    with torch.no_grad():
        ref = ref_better - ref_worse
    return F.softplus(-beta * (better - worse - ref)).mean()
