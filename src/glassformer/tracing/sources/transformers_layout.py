"""What is known of a foreign model before it runs: its parts, their attention, their texts."""

import json
from dataclasses import dataclass
from typing import Any

from torch import nn

from glassformer.tracing.site_names import Place, inmost, own_attention, places
from glassformer.tracing.sources.transformers_interface import uses_interface


@dataclass(eq=False)
class Layout:
    """A model of transformers, as a recorder sees it."""

    model: Any
    both: bool  # whether an encoder reads and a decoder writes
    encoder: nn.Module | None
    decoder: nn.Module | None
    roots: set[nn.Module]  # models, and models inside of these
    places: dict[nn.Module, Place]
    writer: str  # the stack whose text grows
    readers: set[nn.Module]  # roots without a part of it
    own: dict[nn.Module, str]  # attention that goes without the interface, by path
    own_inmost: set[nn.Module]

    @classmethod
    def of(cls, model: Any) -> "Layout":
        from transformers import PreTrainedModel

        both = bool(getattr(model.config, "is_encoder_decoder", False))
        encoder = model.get_encoder() if both else None
        decoder = model.get_decoder() if both else None
        paths = {module: path for path, module in model.named_modules()}
        halves = {m for m in (encoder, decoder) if m is not None}
        roots: set[nn.Module] = halves | {m for m in paths if isinstance(m, PreTrainedModel)}
        using = [(path, m) for m, path in paths.items() if uses_interface(type(m))]
        own = own_attention(model, [m for _, m in using])
        alone = inmost(own)
        found = places([*using, *alone], model.config)
        writer = "decoder" if any(p.stack == "decoder" for p in found.values()) else "encoder"
        writers = {m for m, place in found.items() if place.stack == writer}
        readers = {root for root in roots if writers.isdisjoint(root.modules())}
        single = {module for _, module in alone}
        return cls(model, both, encoder, decoder, roots, found, writer, readers, own, single)

    def place(self, module: nn.Module) -> Place:
        """Of a module that calls attention; some do so on behalf of another one."""
        if module not in self.places:
            path = next(path for path, m in self.model.named_modules() if m is module)
            (place,) = places([(path, module)], self.model.config).values()
            if any(place.name == known.name for known in self.places.values()):
                place = place._replace(name=path)
            self.places[module] = place
        return self.places[module]

    def is_shared(self, module: nn.Module) -> bool:
        """Whether passing this module again is another layer: no other layer has one of its own."""
        kind = self.place(module).kind
        return not any(p.kind == kind for m, p in self.places.items() if m is not module)

    def text(self, module: nn.Module, *, is_outermost: bool) -> str | None:
        """Which text a root reads, None where another one says it."""
        if self.both:
            return {self.encoder: "source", self.decoder: "tokens"}.get(module)
        return "tokens" if is_outermost else None

    def texts(self, place: Place) -> tuple[str, str]:
        """The texts of queries and keys at a place."""
        own = place.stack
        if place.stack == self.writer:
            own = "tokens"
        elif self.both and place.stack == "encoder":
            own = "source"
        if place.is_cross:
            return own, "source" if self.both else "context"
        return own, own


def described(config: Any) -> dict[str, Any]:
    plain = json.loads(json.dumps(config.to_dict(), default=str))
    return {"library": "transformers", "config": plain}
