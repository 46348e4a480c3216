"""The modules of a model by their paths, listed once.

Walking through a model takes PyTorch longer than a small model takes for a token. Whether it still
has the same modules is found much faster.
"""

from typing import NamedTuple
from weakref import WeakKeyDictionary

from torch import nn


class _Listed(NamedTuple):
    modules: tuple[tuple[str, nn.Module], ...]  # without the model itself, which may be deleted
    children: tuple[tuple[nn.Module | None, ...], ...]  # of the model and of each module


_listed: WeakKeyDictionary[nn.Module, _Listed] = WeakKeyDictionary()


def list_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """What `model.named_modules()` gives.

    >>> [path for path, _ in list_modules(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))]
    ['', '0', '1']
    """
    known = _listed.get(model)
    if known is None or not _is_valid(model, known):
        modules = [*model.named_modules()]
        children = tuple(tuple(each._modules.values()) for _, each in modules)
        known = _listed[model] = _Listed(tuple(modules[1:]), children)
    return [("", model), *known.modules]


def _is_valid(model: nn.Module, known: _Listed) -> bool:
    children = iter(known.children)
    if tuple(model._modules.values()) != next(children):
        return False
    return all(
        tuple(each._modules.values()) == expected
        for (_, each), expected in zip(known.modules, children, strict=True)
    )
