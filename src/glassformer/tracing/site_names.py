"""What the places of attention in a foreign model are called.

model.layers.3.self_attn                    decoder.3.self
bert.encoder.layer.0.attention.self         encoder.0.self
decoder.block.2.layer.1.EncDecAttention     decoder.2.cross
vision_model.encoder.layers.1.self_attn     vision.1.self
"""

import re
from collections import Counter
from typing import Any, NamedTuple

from torch import nn

_CROSS = re.compile(r"cross|enc_?dec|encoder_(decoder_)?att", re.IGNORECASE)
_STACKS = (("vision", r"vision|visual|image"), ("audio", r"audio|speech"))
_SIDES = (("decoder", "decoder"), ("encoder", "encoder"))


class Place(NamedTuple):
    """Where a module stands: its stack, its layer, and what its queries meet."""

    name: str
    stack: str
    layer: int | None
    is_cross: bool

    @property
    def kind(self) -> str:
        """Its name without the layer."""
        return self.name.replace(f".{self.layer}.", ".*.", 1)

    def shifted(self, by: int) -> "Place":
        """The same module passed again: layers may share one."""
        if not by or self.layer is None:
            return self
        name = self.name.replace(f".{self.layer}.", f".{self.layer + by}.", 1)
        return self._replace(name=name, layer=self.layer + by)

    def part(self, number: int) -> "Place":
        """The same module, asking for attention once more: by parts of a text, or by differences.

        decoder.2.self, decoder.2.self.part2, decoder.2.self.part3 …
        """
        return self if number == 1 else self._replace(name=f"{self.name}.part{number}")


def places(modules: list[tuple[str, nn.Module]], config: Any) -> dict[nn.Module, Place]:
    """A name for every module; those that would share one keep their paths."""
    found = {module: _place(path, module, config) for path, module in modules}
    paths = {module: path for path, module in modules}
    often = Counter(place.name for place in found.values())
    return {
        module: place if often[place.name] == 1 else place._replace(name=paths[module])
        for module, place in found.items()
    }


def sounds_like_attention(kind: type) -> bool:
    return "attention" in kind.__name__.lower()


def own_attention(model: nn.Module, using: list[nn.Module]) -> dict[nn.Module, str]:
    """Modules that are called attention and do not go through the interface, nor their parts."""
    inside = {part for module in using for part in module.modules()}
    return {
        module: path
        for path, module in model.named_modules()
        if sounds_like_attention(type(module))
        and module not in inside
        and inside.isdisjoint(module.modules())
    }


def inmost(modules: dict[nn.Module, str]) -> list[tuple[str, nn.Module]]:
    """Those that none of the others is a part of."""
    paths = sorted(modules.values())
    return [
        (path, module)
        for module, path in modules.items()
        if not any(other.startswith(f"{path}.") for other in paths)
    ]


def _place(path: str, module: nn.Module, config: Any) -> Place:
    parts = path.split(".")
    at = next((i for i, part in enumerate(parts) if part.isdigit()), None)
    is_cross = bool(_CROSS.search(".".join(parts[0 if at is None else at :])))
    stack = _stack(parts[:at], module, config)
    if at is None:
        return Place(path or type(module).__name__, stack, None, is_cross)
    layer = int(parts[at])
    return Place(f"{stack}.{layer}.{'cross' if is_cross else 'self'}", stack, layer, is_cross)


def _stack(before: list[str], module: nn.Module, config: Any) -> str:
    """What the path says; without a word from it, those who see the future are encoders."""
    for part in before:
        for stack, words in _STACKS:
            if re.search(words, part):
                return stack
    own = getattr(module, "config", config)
    both = getattr(config, "is_encoder_decoder", False)
    if not both and getattr(own, "is_decoder", False):
        return "decoder"
    for part in before:
        for stack, word in _SIDES:
            if word in part:
                return stack
    return "decoder" if getattr(module, "is_causal", True) else "encoder"
