"""What the routers of a model decide: which experts the tokens of a text went to.

`watch_routing` hooks the routers, which return all that there is to see. From it follow the load of
each expert, the text's mean affinities, and the loss that balances them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.layers import Router, Routing


@dataclass(eq=False)
class RoutedLayer:
    """The routing of one layer, over all passes since watching began."""

    name: str  # decoder.3
    n_experts: int
    passes: list[Routing] = field(default_factory=list)

    @property
    def experts(self) -> Int[Tensor, "T k"]:
        """The experts of each token, the one with the highest affinity first."""
        return torch.cat([each.experts.flatten(0, -2) for each in self.passes])

    @property
    def weights(self) -> Float[Tensor, "T k"]:
        """How much each of these experts counts."""
        return torch.cat([each.weights.flatten(0, -2) for each in self.passes])

    @property
    def affinities(self) -> Float[Tensor, "T N"]:
        """The gate's output for every expert."""
        return torch.cat([each.affinities.flatten(0, -2) for each in self.passes])

    @property
    def load(self) -> Int[Tensor, " N"]:
        """How many tokens each expert read."""
        return self.experts.flatten().bincount(minlength=self.n_experts)

    @property
    def shares(self) -> Float[Tensor, " N"]:
        """The load as shares of all choices; 1/N each where it is even."""
        load = self.load
        return load / load.sum()

    def balance_loss(self) -> Float[Tensor, ""]:
        """N Σ shareᵢ · mean affinityᵢ: 1 where the load is even, N where one expert has it all.

        Fedus et al. 2022, eq. 4, over the k choices of each token; the shares have no gradient,
        the affinities have, and they are divided by their sum where the gate is a sigmoid.
        """
        affinities = self.affinities
        affinities = affinities / affinities.sum(-1, keepdim=True)
        return self.n_experts * (self.shares.to(affinities) * affinities.mean(0)).sum()


class RoutingRecord(dict[str, RoutedLayer]):
    """The routed layers by name."""

    def balance_loss(self) -> Float[Tensor, ""]:
        """The mean of the layers' load-balancing losses."""
        return torch.stack([layer.balance_loss() for layer in self.values()]).mean()


@contextmanager
def watch_routing(model: nn.Module) -> Iterator[RoutingRecord]:
    """Record what every router of a model decides; nothing about the model changes.

    >>> from glassformer.models import Config, Experts, build
    >>> experts = Experts(n_experts=4, n_active=2, hidden_dim=8)
    >>> config = Config(
    ...     family="decoder", vocab_size=9, dim=8, n_layers=2, n_heads=2, max_len=16
    ... )
    >>> model = build(config.replace(experts=experts))
    >>> with watch_routing(model) as routing:
    ...     logits = model(torch.tensor([[1, 2, 3, 4, 5]]))
    >>> list(routing), int(routing["decoder.0"].load.sum())
    (['decoder.0', 'decoder.1'], 10)
    """
    routers = [(path, part) for path, part in model.named_modules() if isinstance(part, Router)]
    if not routers:
        raise ConfigError(
            f"Only a mixture of experts has routing to watch; {type(model).__name__} has no "
            "router. Set experts in its config."
        )
    record, handles = RoutingRecord(), []
    for path, router in routers:
        layer = RoutedLayer(_name_layer(path), router.n_experts)
        record[layer.name] = layer
        handles.append(router.register_forward_hook(partial(_note, layer)))
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


def _note(layer: RoutedLayer, _router: nn.Module, _args: tuple, routing: Routing) -> None:
    layer.passes.append(routing)


def _name_layer(path: str) -> str:
    """decoder.blocks.3.feed_forward.router is decoder.3; a layer alone keeps its path."""
    return path.removesuffix(".feed_forward.router").replace(".blocks.", ".")
