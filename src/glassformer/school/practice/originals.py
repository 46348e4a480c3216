"""Whether learner's code has put something of its own in the place of what grading calls.

Values are compared in another process, where a replaced `torch.equal` changes nothing. What is
measured in the learner's process (sizes of tensors, which calls were made) could be talked out of
it, though: so functions that were there before must be there afterwards.
"""

import builtins
import json
import os
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import _python_dispatch


class Originals:
    """Remembers the functions of torch, NumPy, Python and of the grader's own namespaces."""

    def __init__(self, namespaces: Iterable[Mapping[str, Any]]) -> None:
        modules = [builtins, json, os, np, torch, torch.overrides, _python_dispatch]
        classes: list[type] = [torch.Tensor, torch.nn.Module]
        self._held: list[_Held] = []
        for module in (*modules, torch.nn.functional, torch.autograd):
            self._hold(module.__name__, vars(module))
        for space in namespaces:
            name = space["__name__"]
            self._hold(name, space)
            kinds = [value for value in space.values() if isinstance(value, type)]
            classes += [kind for kind in kinds if kind.__module__ == name]
        for each in classes:
            inherited = {name for base in each.__mro__[1:] for name in vars(base)}
            self._hold(each.__name__, vars(each), inherited - set(vars(each)))

    def _hold(self, name: str, space: Mapping[str, Any], absent: Set[str] = frozenset()) -> None:
        before = {key: value for key, value in space.items() if callable(value)}
        self._held.append(_Held(name, space, before, frozenset(absent)))

    def find_replaced(self) -> str:
        """The first name that leads elsewhere now; empty if all are as they were."""
        for held in self._held:
            shadowed = held.absent & held.space.keys()
            changed = (
                name for name, value in held.before.items() if held.space.get(name) is not value
            )
            if name := next(iter(shadowed), None) or next(changed, None):
                return f"{held.owner}.{name}"[:200]
        return ""


class _Held(NamedTuple):
    """A namespace as it was; `absent` are inherited names, which it could come to shadow."""

    owner: str
    space: Mapping[str, Any]
    before: dict[str, Any]
    absent: frozenset[str]
