"""From logits to the distribution from which the next token is sampled."""

import torch
from torch import Tensor


def probabilities(
    logits: Tensor, temperature: float, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """logits / temperature → the k largest → the fewest that reach p → softmax"""
    logits = logits / temperature
    if top_k is not None:
        least = logits.topk(top_k).values[:, -1:]  # (B, 1): the smallest to keep
        logits = logits.masked_fill(logits < least, -torch.inf)
    if top_p is not None:
        ranked, order = logits.sort(descending=True)
        p = ranked.softmax(dim=-1)
        removed = p.cumsum(dim=-1) - p >= top_p  # the tokens before it reach top_p
        removed = removed.scatter(1, order, removed)  # back to the order of the tokens
        logits = logits.masked_fill(removed, -torch.inf)
    return logits.softmax(dim=-1)
