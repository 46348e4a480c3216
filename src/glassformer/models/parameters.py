"""Counting what a module learns, and finding the width that gives a wanted count."""

from collections.abc import Callable

import torch
from torch import nn

from glassformer.errors import ConfigError
from glassformer.layers import MixtureOfExperts


def count_parameters(module: nn.Module) -> int:
    """How many numbers a module learns; a tensor in two places counts once.

    >>> from glassformer.models.recurrent import LSTMLanguageModel
    >>> count_parameters(LSTMLanguageModel(vocab_size=11, dim=6, n_layers=1))  # 11·6 + 8·6·(6+1)
    402
    """
    return sum(parameter.numel() for parameter in module.parameters())


def count_active_parameters(module: nn.Module) -> int:
    """How many of them take part in one token: of each mixture's experts, only those chosen.

    >>> from glassformer.layers import MixtureOfExperts, Router
    >>> layer = MixtureOfExperts(3, 5, router=Router(3, n_experts=4, n_active=1), bias=False)
    >>> count_parameters(layer), count_active_parameters(layer)  # 4·3 + 4·2·3·5, 4·3 + 2·3·5
    (132, 42)
    """
    idle = 0
    for mixture in (part for part in module.modules() if isinstance(part, MixtureOfExperts)):
        n, k = mixture.router.n_experts, mixture.router.n_active
        experts = (mixture.expert_up, mixture.expert_down)
        idle += sum(count_parameters(part) for part in experts) // n * (n - k)
    return count_parameters(module) - idle


def match_dim(target_parameters: int, build: Callable[[int], nn.Module]) -> int:
    """The width at which `build(dim)` is closest to a number of parameters, for fair comparisons.

    By bisection, so the module must grow with dim; on the meta device, without memory.

    >>> from glassformer.models.recurrent import LSTMLanguageModel
    >>> match_dim(1_000_000, lambda dim: LSTMLanguageModel(1000, dim, n_layers=2))
    220
    """
    if target_parameters < 1:
        raise ConfigError(
            f"target_parameters must be at least 1; got target_parameters={target_parameters}."
        )

    def count(dim: int) -> int:
        with torch.device("meta"):
            return count_parameters(build(dim))

    low, high = 1, 2
    while count(high) < target_parameters:
        if count(high) <= count(low):
            raise ConfigError(
                "build(dim) must have more parameters the larger dim is; got "
                f"{count(low)} at dim={low} and {count(high)} at dim={high}. Let dim be the width."
            )
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < target_parameters else (low, middle)
    return min((low, high), key=lambda dim: abs(count(dim) - target_parameters))
