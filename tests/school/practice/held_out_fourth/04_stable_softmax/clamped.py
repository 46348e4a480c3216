# mistake: clamps large scores to 80 instead of subtracting the maximum
import torch


def softmax(scores):
    safe = torch.clamp(scores, max=80.0)
    powers = torch.exp(safe)
    return powers / powers.sum(dim=-1, keepdim=True)
