"""The model that a worker runs: its attention layers, their names, and which heads are here."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.backends import Listener
from glassformer.tracing.engines.vllm.obstacles import find_obstacle
from glassformer.tracing.head_shards import HeadShard
from glassformer.tracing.layout import Layout, Place
from glassformer.tracing.selection import Selection
from glassformer.tracing.site_names import name_places
from glassformer.tracing.sources.transformers_layout import describe_model


@dataclass(frozen=True, kw_only=True)
class WatchedLayer:
    """What is known of a layer, without the layer itself: a trace must not keep an engine alive."""

    name: str  # vLLM's
    place: Place
    n_heads: int
    shard: HeadShard | None
    window: int | None
    scale: float
    softcap: float | None
    obstacle: str | None  # why it cannot be watched


class WatchedModel:
    """What recorders of one worker share; nothing in here changes while it serves."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        config = runner.vllm_config
        model = config.model_config
        found = config.compilation_config.static_forward_context
        self.layers = {name: layer for name, layer in found.items() if hasattr(layer, "impl")}
        places = name_places(
            [(name.removesuffix(".attn"), layer) for name, layer in self.layers.items()],
            model.hf_text_config,
        )
        self.layout = Layout(name=model.architecture, places=places, writer="decoder")
        self.rank, self.n_ranks = _find_rank(config.parallel_config)
        self.n_heads = getattr(model.hf_text_config, "num_attention_heads", None)
        self.obstacles = {
            name: why
            for name, layer in self.layers.items()
            if (why := find_obstacle(layer) or self._find_uneven(layer)) is not None
        }
        self.description = describe_model(model.hf_config)
        self.description |= {"library": "vllm", "name": str(model.model)}

    @property
    def part(self) -> tuple[int, int] | None:
        """Which part of a trace this worker records; None: all of it."""
        return None if self.n_ranks == 1 else (self.rank, self.n_ranks)

    def place(self, layer: Any) -> Place:
        return self.layout.places[layer]

    def shard(self, layer: Any) -> HeadShard | None:
        """The heads of a layer that are here; None: all of them."""
        if self.n_ranks == 1:
            return None
        return HeadShard(self.rank * layer.num_heads, self.n_ranks * layer.num_heads)

    def select_heads(self, selection: Selection, layer: Any) -> tuple[int, ...] | None:
        """The selected heads that are here, counted from the first of them; None: all."""
        place = self.place(layer)
        return selection.head_numbers(layer.num_heads, place.name, self.shard(layer))

    def select_layers(self, selection: Selection) -> dict[str, Any]:
        return {
            name: layer
            for name, layer in self.layers.items()
            if selection.has_layer(self.place(layer).layer)
        }

    def describe_layers(self, selection: Selection) -> dict[str, WatchedLayer]:
        """The selected layers, by name; those that cannot be watched may lack anything."""
        return {
            name: WatchedLayer(
                name=name,
                place=self.place(layer),
                n_heads=layer.num_heads,
                shard=self.shard(layer),
                window=getattr(layer, "sliding_window", None),
                scale=float(getattr(layer.impl, "scale", 1.0)),
                softcap=float(getattr(layer.impl, "logits_soft_cap", None) or 0) or None,
                obstacle=self.obstacles.get(name),
            )
            for name, layer in self.select_layers(selection).items()
        }

    def find_state(self, request: str) -> Any:
        """vLLM's state of a request, in engines that speculate; None in others."""
        is_speculating = self.runner.vllm_config.speculative_config is not None
        return self.runner.requests[request] if is_speculating else None

    def check(self, selection: Selection) -> None:
        """Raise for options that this model cannot fulfil."""
        if not self.layers:
            raise TraceError(f"{self.layout.name} has no attention: there is nothing to watch.")
        if len(self.obstacles) == len(self.layers):
            name, why = next(iter(self.obstacles.items()))
            raise TraceError(
                f"No layer of {self.layout.name} can be watched; {name}: {why}. vLLM loads the "
                "plug-in of glassformer when the engine is built: VLLM_PLUGINS must not exclude it."
            )
        selection.check(*self.extent)

    @property
    def extent(self) -> tuple[int | None, int]:
        """How many layers and heads the model has."""
        numbers = [place.layer for place in self.layout.places.values() if place.layer is not None]
        here = max(layer.num_heads for layer in self.layers.values())
        return max(numbers) + 1 if numbers else None, here * self.n_ranks

    def attach(self, listener: Listener, selection: Selection) -> None:
        for name, layer in self.select_layers(selection).items():
            if name not in self.obstacles:
                layer.impl.listeners = (*layer.impl.listeners, listener)

    def detach(self, listener: Listener) -> None:
        for layer in self.layers.values():
            listeners = getattr(layer.impl, "listeners", ())
            if listener in listeners:
                layer.impl.listeners = tuple(each for each in listeners if each is not listener)

    def _find_uneven(self, layer: Any) -> str | None:
        """Heads have numbers only if each worker has as many, and none has those of another."""
        if self.n_ranks == 1 or layer.num_heads * self.n_ranks == self.n_heads:
            return None
        return (
            f"of its {self.n_heads} heads each of {self.n_ranks} workers has {layer.num_heads}: "
            "which ones is not known"
        )


def _find_rank(parallel: Any) -> tuple[int, int]:
    """The place of this worker among those that share the heads of a layer."""
    if parallel.tensor_parallel_size == 1:
        return 0, 1
    group = import_module("vllm.distributed.parallel_state").get_tp_group()
    return group.rank_in_group, group.world_size
