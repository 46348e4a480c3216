"""Averaged weights: an exponential moving average (EMA), or the mean of the last checkpoints."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class MovingAverage:
    """An exponential moving average of a model's parameters.

        average ← d · average + (1 − d) · weights        d = min(decay, (1 + n) / (10 + n))

    While n is small, the average follows the weights closely and forgets the initial ones.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> average = MovingAverage(model, decay=0.5)
    >>> before = float(model.weight.detach())
    >>> with torch.no_grad(): _ = model.weight.add_(1.0)
    >>> average.update(model, n=100)
    >>> round(float(average.weights["weight"]) - before, 4)
    0.5
    """

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        self.decay = decay
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, *, n: int) -> None:
        """Add the weights after n optimizer updates to the average."""
        decay = min(self.decay, (1 + n) / (10 + n))
        now = [p.detach() for _, p in model.named_parameters()]
        torch._foreach_lerp_(  # type: ignore[attr-defined]  # all tensors in a few kernels
            list(self.weights.values()), now, 1 - decay
        )

    def swap(self, model: nn.Module) -> None:
        """Swap the model's weights with the average; a second call restores them."""
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                mine = self.weights[name].clone()
                self.weights[name].copy_(parameter)
                parameter.copy_(mine)


@contextmanager
def using_average(average: MovingAverage | None, model: nn.Module) -> Iterator[None]:
    """Compute with the moving average of the weights (EMA), if there is one."""
    if average is None:
        yield
        return
    average.swap(model)
    try:
        yield
    finally:
        average.swap(model)


def mean_weights(
    states: Sequence[dict[str, Tensor]], shares: Sequence[float] | None = None
) -> dict[str, Tensor]:
    """The mean of several states of one model, summed in float64 (Vaswani et al. 2017, §6.1).

    All states count equally unless `shares`, which must sum to 1, gives their weights.

    >>> mean_weights([{"w": torch.tensor([1.0])}, {"w": torch.tensor([2.0])}])
    {'w': tensor([1.5000])}
    """

    def mean(tensors: Tensor) -> Any:
        if shares is None:
            return tensors.mean(0)
        return sum(share * t for share, t in zip(shares, tensors, strict=True))

    return {
        name: mean(torch.stack([s[name].double() for s in states])).to(tensor.dtype)
        for name, tensor in states[0].items()
    }
