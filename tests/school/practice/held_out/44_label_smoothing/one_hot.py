# correct: one-hot targets and einsum
import torch
import torch.nn.functional as F


def smoothed_loss(logits, targets, smoothing):
    classes = logits.size(-1)
    wanted = F.one_hot(targets, classes).to(logits) * (1 - smoothing) + smoothing / classes
    return -torch.einsum("blv,blv->", wanted, F.log_softmax(logits, -1)) / targets.numel()
