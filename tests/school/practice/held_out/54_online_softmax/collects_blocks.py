# mistake: concatenates all blocks and computes the result from the whole, which the task forbids.
import torch


def online_softmax(blocks):
    scores = torch.cat(list(blocks), dim=-1)
    top = scores.amax(dim=-1)
    total = torch.exp(scores - top[:, None]).sum(dim=-1)
    return top, total
