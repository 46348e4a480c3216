# correct: takes the heads apart and concatenates them along the width
import torch


def merge_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)
