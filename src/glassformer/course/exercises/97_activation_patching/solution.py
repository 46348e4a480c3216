"""Activation patching: one part at a time gets back what it did in the clean run."""

from collections.abc import Callable

import torch
from torch import Tensor

Part = Callable[[Tensor], Tensor]


def run(parts: list[Part], x: Tensor, patches: dict[int, Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The final stream, and what each part added"""
    added = []
    for i, part in enumerate(parts):
        added.append(patches[i] if i in patches else part(x))
        x = x + added[-1]  # later parts see the change
    return x, added


def patching_effects(
    parts: list[Part], clean: Tensor, corrupt: Tensor, metric: Callable[[Tensor], Tensor]
) -> Tensor:
    """How much of the metric each part restores: one number for each part"""
    good, added = run(parts, clean, {})
    high, low = metric(good), metric(run(parts, corrupt, {})[0])
    effects = []
    for i in range(len(parts)):
        patched, _ = run(parts, corrupt, {i: added[i]})
        effects.append((metric(patched) - low) / (high - low))
    return torch.stack(effects)
