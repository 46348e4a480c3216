"""The names of attention sites in models of transformers.

model.layers.3.self_attn                    decoder.3.self
bert.encoder.layer.0.attention.self         encoder.0.self
decoder.block.2.layer.1.EncDecAttention     decoder.2.cross
vision_model.encoder.layers.1.self_attn     vision.1.self
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from torch import nn

from glassformer.tracing.layout import Place
from glassformer.tracing.model_lookup import ModuleTree

_EXPORTED = "torch.export.unflatten"
_CROSS = re.compile(r"cross|enc_?dec|encoder_(decoder_)?att", re.IGNORECASE)
_STACKS = (("vision", r"vision|visual|image"), ("audio", r"audio|speech"))
_SIDES = (("decoder", "decoder"), ("encoder", "encoder"))


def name_places(modules: list[tuple[str, nn.Module]], config: Any) -> dict[nn.Module, Place]:
    """A name for every module; those that would share one keep their paths."""
    both = getattr(config, "is_encoder_decoder", False)
    decoding: dict[int, bool] = {}  # by config, whose attributes take tens of microseconds each
    found = {}
    for path, module in modules:
        own = getattr(module, "config", config)
        if id(own) not in decoding:
            decoding[id(own)] = not both and bool(getattr(own, "is_decoder", False))
        sees_future = not getattr(module, "is_causal", True)
        name = type(module).__name__
        found[module] = _place(path, name, is_decoder=decoding[id(own)], sees_future=sees_future)
    paths = {module: path for path, module in modules}
    often = Counter(place.name for place in found.values())
    return {
        module: place if often[place.name] == 1 else place._replace(name=paths[module])
        for module, place in found.items()
    }


def sounds_like_attention(name: str) -> bool:
    return "attention" in name.lower()


def class_name(module: nn.Module) -> str:
    """The name of its class; where torch.export has made a graph of it, of what it was."""
    if type(module).__module__ == _EXPORTED:
        made_from = getattr(module, "_ty", None)
        return str(made_from).rpartition(".")[2]
    return type(module).__name__


def _may_sound(kind: type[nn.Module], module: nn.Module) -> bool:
    """Whether modules of a class may be called attention; graphs of torch.export share one."""
    return kind.__module__ == _EXPORTED or sounds_like_attention(class_name(module))


def find_custom_attention(tree: ModuleTree, using: Iterable[nn.Module]) -> dict[nn.Module, str]:
    """Modules whose class is called attention, apart from those that use the interface.

    Neither a part of a module that does, nor a module that contains one.
    """
    users = set(using)
    strangers = tree.kinds.keys() - {type(module) for module in users}
    sounding = {kind for kind in strangers if _may_sound(kind, tree.kinds[kind][0])}
    if not sounding:
        return {}
    named = {
        module: path
        for module, path in tree.paths.items()
        if type(module) in sounding and sounds_like_attention(class_name(module))
    }
    around = tree.above(tree.below(users)) if named else {}
    return {module: path for module, path in named.items() if module not in around}


def find_innermost(modules: dict[nn.Module, str]) -> list[tuple[str, nn.Module]]:
    """Modules that contain none of the others."""
    paths = sorted(modules.values())
    return [
        (path, module)
        for module, path in modules.items()
        if not any(other.startswith(f"{path}.") for other in paths)
    ]


@lru_cache(maxsize=4096)  # a model is looked at again and again
def _place(path: str, kind: str, *, is_decoder: bool, sees_future: bool) -> Place:
    parts = path.split(".")
    at = next((i for i, part in enumerate(parts) if part.isdigit()), None)
    is_cross = bool(_CROSS.search(".".join(parts[0 if at is None else at :])))
    stack = _stack(".".join(parts[:at]), is_decoder=is_decoder, sees_future=sees_future)
    if at is None:
        return Place(path or kind, stack, None, is_cross)
    layer = int(parts[at])
    return Place(f"{stack}.{layer}.{'cross' if is_cross else 'self'}", stack, layer, is_cross)


@lru_cache  # most attention of a model has the same before its number
def _stack(before: str, *, is_decoder: bool, sees_future: bool) -> str:
    """What the path says; if it says nothing, modules that see the future are encoders."""
    parts = before.split(".")
    for part in parts:
        for stack, words in _STACKS:
            if re.search(words, part):
                return stack
    if is_decoder:
        return "decoder"
    for part in parts:
        for stack, word in _SIDES:
            if word in part:
                return stack
    return "encoder" if sees_future else "decoder"
