# mistake: torch.sqrt needs a tensor and gets a Python integer.
import torch


def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / torch.sqrt(q.shape[-1])
