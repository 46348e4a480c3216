"""The modules of a model by their paths, listed once.

Walking through a model takes PyTorch longer than a small model takes for a token. Whether it still
has the same modules is found much faster. All that is remembered refers weakly to them: a module
may lead back to the model (by a hook that knows it, say), which would then never be deleted.
"""

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple
from weakref import WeakKeyDictionary, ref

from torch import nn

_parts_of = attrgetter("_modules")


class _Listed(NamedTuple):
    paths: Sequence[str]  # of the model and of each module
    references: list[ref[nn.Module]]  # to the modules without the model itself
    deleted: list[ref[nn.Module]]  # those that are not there any more
    counts: list[int]  # of the parts of the model and of each module
    names: list[str]  # of all these parts
    parts: list[int]  # their places in the list of modules, −1 for None

    @classmethod
    def of(cls, paths: dict[nn.Module, str]) -> "_Listed":
        places = {module: i for i, module in enumerate(paths)}
        deleted: list[ref[nn.Module]] = []
        own = [module._modules for module in paths]
        children = chain.from_iterable(each.values() for each in own)
        return cls(
            paths=tuple(paths.values()),
            references=[ref(module, deleted.append) for module in [*paths][1:]],
            deleted=deleted,
            counts=[*map(len, own)],
            names=[*chain.from_iterable(own)],
            parts=[-1 if child is None else places[child] for child in children],
        )

    def find(self, model: nn.Module) -> list[nn.Module] | None:
        """The modules; None if they are others by now, or have other parts or names."""
        modules: list = [model, *[reference() for reference in self.references]]
        if self.deleted:
            return None
        own = [*map(_parts_of, modules)]
        if [*map(len, own)] != self.counts:
            return None
        own = [*filter(None, own)]
        if [*chain.from_iterable(own)] != self.names:
            return None
        modules.append(None)
        expected = [*map(modules.__getitem__, self.parts)]
        if [*chain.from_iterable(map(dict.values, own))] != expected:
            return None
        modules.pop()
        return modules


_listed: WeakKeyDictionary[nn.Module, _Listed] = WeakKeyDictionary()


def find_paths(model: nn.Module) -> dict[nn.Module, str]:
    """The path of each module, parents before their children.

    >>> list(find_paths(nn.Sequential(nn.Linear(2, 3), nn.ReLU())).values())
    ['', '0', '1']
    """
    known = _listed.get(model)
    if known is not None and (modules := known.find(model)) is not None:
        return dict(zip(modules, known.paths, strict=True))
    paths = _walk(model)
    _listed[model] = _Listed.of(paths)
    return paths


def list_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """What `model.named_modules()` gives."""
    return [(path, module) for module, path in find_paths(model).items()]


def _walk(model: nn.Module) -> dict[nn.Module, str]:
    paths: dict[nn.Module, str] = {}
    waiting: list[tuple[str, nn.Module | None]] = [("", model)]
    while waiting:
        path, module = waiting.pop()
        if module is None or module in paths:
            continue
        paths[module] = path
        start = f"{path}." if path else ""
        waiting += [(start + name, part) for name, part in reversed(module._modules.items())]
    return paths
