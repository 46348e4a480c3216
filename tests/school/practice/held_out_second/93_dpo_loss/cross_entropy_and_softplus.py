# correct: cross_entropy with reduction="none" for the log-probabilities, softplus of the negative margin for the loss
import torch
import torch.nn.functional as F


def answer_log_p(logits, tokens, mask):
    nll = F.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
    return -torch.where(mask, nll, torch.zeros_like(nll)).sum(-1)


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    model_ratio = better - worse
    with torch.no_grad():
        reference_ratio = ref_better - ref_worse
    return F.softplus(-beta * (model_ratio - reference_ratio)).mean()
