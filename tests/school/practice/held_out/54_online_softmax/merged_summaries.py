# correct: sums each block on its own and merges the two summaries
import torch


def summarize(block):
    top = block.amax(dim=-1)
    return top, (block - top.unsqueeze(-1)).exp().sum(dim=-1)


def merge(left, right):
    top = torch.maximum(left[0], right[0])
    return top, sum(total * (m - top).exp() for m, total in (left, right))


def online_softmax(blocks):
    blocks = iter(blocks)
    state = summarize(next(blocks))
    for block in blocks:
        state = merge(state, summarize(block))
    return state
