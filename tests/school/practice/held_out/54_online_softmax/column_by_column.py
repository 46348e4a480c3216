# correct: takes every block column by column, branching with torch.where
import torch


def online_softmax(blocks):
    top = total = None
    for block in blocks:
        for score in block.unbind(dim=1):
            if top is None:
                top, total = score, torch.ones_like(score)
                continue
            larger = score > top
            total = torch.where(
                larger, total * torch.exp(top - score) + 1, total + torch.exp(score - top)
            )
            top = torch.where(larger, score, top)
    return top, total
