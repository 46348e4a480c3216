"""How a Transformer is trained, and how it writes."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Model = Callable[[Tensor, Tensor], Tensor]


def loss(model: Model, source: Tensor, target: Tensor, begin: int) -> Tensor:
    """Reads begin and the target without its last letter; predicts the target"""
    inputs = torch.cat([torch.full((len(target), 1), begin), target[:, :-1]], dim=1)
    logits = model(source, inputs)  # (B, L, V)
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def train(
    model: nn.Module, source: Tensor, target: Tensor, begin: int, steps: int, lr: float
) -> list[float]:
    """Steps of Adam on the loss; returns the losses"""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        now = loss(model, source, target, begin)
        optimizer.zero_grad()  # otherwise the gradients of all steps add up
        now.backward()
        optimizer.step()
        losses.append(now.item())
    return losses


@torch.no_grad()
def write(model: Model, source: Tensor, begin: int, length: int) -> Tensor:
    """begin → the most likely letter → the most likely letter after that → …"""
    tokens = torch.full((len(source), 1), begin)
    for _ in range(length):
        token = model(source, tokens)[:, -1].argmax(dim=-1)  # (B,)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
    return tokens[:, 1:]
