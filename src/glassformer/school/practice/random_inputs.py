"""Random inputs: new for every grading, the same for solution, faults and learner."""

from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

Item = TypeVar("Item")


class Draw:
    """A stream of sizes and numbers that nothing outside can move.

    >>> a, b = Draw(7), Draw(7)
    >>> a.sizes(3) == b.sizes(3)
    True
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def size(self, low: int = 2, high: int = 7) -> int:
        """A size, low ≤ size ≤ high."""
        return int(self.integers(low, high + 1))

    def sizes(self, n: int, low: int = 2, high: int = 8) -> list[int]:
        """Sizes that all differ: a mix-up of two dimensions then shows."""
        order = torch.randperm(max(high - low + 1, n), generator=self._generator)
        return [low + int(place) for place in order[:n]]

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Normal numbers in float64."""
        return scale * torch.randn(*shape, generator=self._generator, dtype=torch.float64)

    def array(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """The same for NumPy."""
        return self.normal(*shape, scale=scale).numpy()

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers, low ≤ n < high."""
        return torch.randint(low, high, shape, generator=self._generator)

    def choice(self, options: Sequence[Item]) -> Item:
        """One of several."""
        return options[int(self.integers(0, len(options)))]

    def mask(self, *shape: int) -> Tensor:
        """Booleans; every row allows something and, where it has two places, hides something."""
        mask = torch.rand(*shape, generator=self._generator) < 0.5
        order = torch.rand(*shape, generator=self._generator).argsort(dim=-1)
        mask = mask.scatter(-1, order[..., :1], True)
        return mask.scatter(-1, order[..., 1:2], False)

    def key(self) -> int:
        """A number from which other numbers can be drawn."""
        return int(self.integers(0, 2**31))

    def weights(self, model: nn.Module) -> nn.Module:
        """Fill a model's parameters; see `fill`."""
        return fill(model, self.key())


def fill(model: nn.Module, key: int) -> nn.Module:
    """Parameters by their names alone, so that the order in which they were made means nothing."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            generator = torch.Generator().manual_seed(key ^ crc32(name.encode()))
            numbers = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            width = parameter.shape[-1] if parameter.dim() > 1 else 1
            parameter.copy_(numbers / width**0.5)
    return model
