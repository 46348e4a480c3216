"""The most likely token at each step, until every sentence has ended."""

from collections.abc import Callable

import torch
from torch import Tensor


def greedy(
    model: Callable[[Tensor, Tensor], Tensor],
    source: Tensor,
    begin: int,
    end: int,
    pad: int,
    max_new: int,
) -> Tensor:
    """begin → the most likely token → the most likely token after that → … → end"""
    tokens = torch.full((len(source), 1), begin)  # (B, 1)
    finished = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(max_new):
        logits = model(source, tokens)  # (B, L, V)
        token = logits[:, -1].argmax(dim=-1)  # (B,): only the last prediction is new
        token = torch.where(finished, pad, token)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        finished = finished | (token == end)
        if finished.all():
            break
    return tokens[:, 1:]
