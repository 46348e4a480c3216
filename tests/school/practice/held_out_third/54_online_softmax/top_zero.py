# mistake: the largest score starts at 0, which is wrong for rows of negative scores
import torch


def online_softmax(blocks):
    top, total = 0.0, 0.0
    for block in blocks:
        new = block.amax(dim=-1).clamp(min=0) if isinstance(top, float) else torch.maximum(top, block.amax(dim=-1))
        total = total * torch.exp(torch.as_tensor(top) - new) + torch.exp(block - new[:, None]).sum(-1)
        top = new
    return top, total
