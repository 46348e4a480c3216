"""Where attention happens in a model, and which texts it reads: known before anything runs."""

from dataclasses import dataclass, field
from typing import NamedTuple

from torch import nn


class Place(NamedTuple):
    """Where a module sits: its stack, its layer, and what its queries meet."""

    name: str
    stack: str
    layer: int | None
    is_cross: bool

    @property
    def kind(self) -> str:
        """Its name without the layer."""
        return self.name.replace(f".{self.layer}.", ".*.", 1)

    def in_later_layer(self, by: int) -> "Place":
        """The same module called again: layers may share one."""
        if not by or self.layer is None:
            return self
        name = self.name.replace(f".{self.layer}.", f".{self.layer + by}.", 1)
        return self._replace(name=name, layer=self.layer + by)

    def numbered_part(self, number: int) -> "Place":
        """The same module computing attention once more: on a part of a text, or a difference.

        decoder.2.self, decoder.2.self.part2, decoder.2.self.part3 …
        """
        return self if number == 1 else self._replace(name=f"{self.name}.part{number}")


@dataclass(eq=False, kw_only=True)
class Layout:
    """The attention modules of a model, and the texts of its stacks."""

    name: str  # of the model's class
    places: dict[nn.Module, Place] = field(default_factory=dict)
    writer: str = ""  # the stack whose text grows; empty: nothing is known of texts
    has_source: bool = False  # whether an encoder reads one text and a decoder writes another
    first_layer: int = 0  # more than 0 in a later stage of a pipeline

    @property
    def site_names(self) -> list[str]:
        return [place.name for place in self.places.values()] or [self.name]

    def texts(self, place: Place) -> tuple[str, str]:
        """The texts of the queries and of the keys at a place."""
        own = place.stack
        if place.stack == self.writer:
            own = "tokens"
        elif self.has_source and place.stack == "encoder":
            own = "source"
        if place.is_cross:
            return own, "source" if self.has_source else "context"
        return own, own
