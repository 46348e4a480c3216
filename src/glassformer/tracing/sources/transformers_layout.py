"""What is known of a model of transformers before it runs: its parts, attention and texts."""

import json
from dataclasses import dataclass
from typing import Any

from torch import nn

from glassformer.tracing.layout import Layout, Place
from glassformer.tracing.model_lookup import ModuleTree, has_part
from glassformer.tracing.site_names import find_custom_attention, find_innermost, name_places
from glassformer.tracing.sources.transformers_interface import find_configs, uses_interface
from glassformer.tracing.stages import Stage, find_stage


@dataclass(eq=False, kw_only=True)
class TransformersLayout(Layout):
    """A model of transformers, as the recorder sees it."""

    tree: ModuleTree
    encoder: nn.Module | None
    decoder: nn.Module | None
    roots: set[nn.Module]  # the models inside it, itself included
    readers: set[nn.Module]  # roots without a part of the stack that writes
    custom: dict[nn.Module, str]  # attention without the interface, by path
    innermost: set[nn.Module]  # of these, those that contain none of the others
    config: Any  # None: a graph that torch.export has made
    stage: Stage

    @classmethod
    def of(cls, tree: ModuleTree, first_layer: int | None = None) -> "TransformersLayout":
        from transformers import PreTrainedModel

        model: Any = tree.model
        is_model = isinstance(model, PreTrainedModel)
        config = model.config if is_model else next(find_configs(tree), None)
        has_source = is_model and bool(getattr(config, "is_encoder_decoder", False))
        encoder = model.get_encoder() if has_source else None
        decoder = model.get_decoder() if has_source else None
        halves = {m for m in (encoder, decoder) if m is not None}
        roots: set[nn.Module] = halves.union(
            *(found for kind, found in tree.kinds.items() if issubclass(kind, PreTrainedModel))
        )
        roots = roots or {model}  # a stage of a pipeline: layers without a model around them
        users = set(filter(uses_interface, tree.kinds))
        using = [(path, m) for m, path in tree.paths.items() if type(m) in users]
        custom = find_custom_attention(tree, [m for _, m in using])
        innermost = find_innermost(custom)
        places = name_places([*using, *innermost], config)
        stage = find_stage(tree, places, config, first_layer)
        places = {module: place.in_later_layer(stage.shift) for module, place in places.items()}
        writer = "decoder" if any(p.stack == "decoder" for p in places.values()) else "encoder"
        writing = {m for m, place in places.items() if place.stack == writer}
        return cls(
            name=type(model).__name__,
            places=places,
            writer=writer,
            has_source=has_source,
            tree=tree,
            encoder=encoder,
            decoder=decoder,
            roots=roots,
            readers={root for root in roots if not has_part(root, writing)},
            custom=custom,
            innermost={module for _, module in innermost},
            first_layer=stage.layers[0] if stage.is_part or stage.shift else 0,
            config=config,
            stage=stage,
        )

    def find_place(self, module: nn.Module) -> Place:
        """Of a module that calls attention; some do so on behalf of another one."""
        if module not in self.places:
            path = self.tree.paths[module]
            (place,) = name_places([(path, module)], self.config).values()
            place = place.in_later_layer(self.stage.shift)
            if any(place.name == known.name for known in self.places.values()):
                place = place._replace(name=path)
            self.places[module] = place
        return self.places[module]

    def is_shared(self, module: nn.Module) -> bool:
        """Whether another call of this module is another layer: no other layer has its own."""
        kind = self.find_place(module).kind
        return not any(p.kind == kind for m, p in self.places.items() if m is not module)

    def find_text(self, module: nn.Module, *, is_outermost: bool) -> str | None:
        """Which text a root reads; None where another root or an earlier stage says it."""
        if self.has_source:
            return {self.encoder: "source", self.decoder: "tokens"}.get(module)
        return "tokens" if is_outermost and not self.first_layer else None


def describe_model(config: Any) -> dict[str, Any]:
    if config is None:
        return {"library": "torch.export"}
    plain = json.loads(json.dumps(config.to_dict(), default=str))
    return {"library": "transformers", "config": plain}
