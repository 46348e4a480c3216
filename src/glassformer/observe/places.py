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

    def shifted(self, by: int) -> "Place":
        """The same module passed again: layers may share one."""
        if not by or self.layer is None:
            return self
        name = self.name.replace(f".{self.layer}.", f".{self.layer + by}.", 1)
        return self._replace(name=name, layer=self.layer + by)


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


def unseen(model: nn.Module, config: Any, using: list[nn.Module]) -> dict[str, str]:
    """What is called attention, but does not go through the interface, by itself or its parts."""
    inside = {part for module in using for part in module.modules()}
    alone = [
        (path, module)
        for path, module in model.named_modules()
        if sounds_like_attention(type(module))
        and module not in inside
        and inside.isdisjoint(module.modules())
    ]
    inmost = [
        (path, module)
        for path, module in alone
        if not any(other.startswith(f"{path}.") for other, _ in alone)
    ]
    return {
        place.name: f"{type(module).__name__} does not use the attention interface of transformers"
        for module, place in places(inmost, config).items()
    }


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
