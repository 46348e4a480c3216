"""What is known of a model of transformers before it runs: its parts, attention and texts."""

import json
from dataclasses import dataclass
from typing import Any

from torch import nn

from glassformer.tracing.layout import Layout, Place
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.site_names import find_custom_attention, find_innermost, name_places
from glassformer.tracing.sources.transformers_interface import uses_interface


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

    @classmethod
    def of(cls, tree: ModuleTree) -> "TransformersLayout":
        from transformers import PreTrainedModel

        model: Any = tree.model
        has_source = bool(getattr(model.config, "is_encoder_decoder", False))
        encoder = model.get_encoder() if has_source else None
        decoder = model.get_decoder() if has_source else None
        halves = {m for m in (encoder, decoder) if m is not None}
        roots: set[nn.Module] = halves | {m for m in tree.paths if isinstance(m, PreTrainedModel)}
        using = [(path, m) for m, path in tree.paths.items() if uses_interface(type(m))]
        custom = find_custom_attention(tree, [m for _, m in using])
        innermost = find_innermost(custom)
        places = name_places([*using, *innermost], model.config)
        writer = "decoder" if any(p.stack == "decoder" for p in places.values()) else "encoder"
        writing = tree.above(m for m, place in places.items() if place.stack == writer)
        return cls(
            name=type(model).__name__,
            places=places,
            writer=writer,
            has_source=has_source,
            tree=tree,
            encoder=encoder,
            decoder=decoder,
            roots=roots,
            readers=roots - writing.keys(),
            custom=custom,
            innermost={module for _, module in innermost},
        )

    def find_place(self, module: nn.Module) -> Place:
        """Of a module that calls attention; some do so on behalf of another one."""
        if module not in self.places:
            path = self.tree.paths[module]
            config = getattr(self.tree.model, "config", None)
            (place,) = name_places([(path, module)], config).values()
            if any(place.name == known.name for known in self.places.values()):
                place = place._replace(name=path)
            self.places[module] = place
        return self.places[module]

    def is_shared(self, module: nn.Module) -> bool:
        """Whether another call of this module is another layer: no other layer has its own."""
        kind = self.find_place(module).kind
        return not any(p.kind == kind for m, p in self.places.items() if m is not module)

    def find_text(self, module: nn.Module, *, is_outermost: bool) -> str | None:
        """Which text a root reads; None where another root says it."""
        if self.has_source:
            return {self.encoder: "source", self.decoder: "tokens"}.get(module)
        return "tokens" if is_outermost else None


def describe_model(config: Any) -> dict[str, Any]:
    plain = json.loads(json.dumps(config.to_dict(), default=str))
    return {"library": "transformers", "config": plain}
