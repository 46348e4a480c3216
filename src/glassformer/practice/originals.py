"""Whether learner's code has put something of its own in the place of what grading calls.

Values are compared in another process, where a replaced `torch.equal` changes nothing. What is
measured in the learner's process (sizes of tensors, which calls were made) could be talked out of
it, though: so functions that were there before must be there afterwards.
"""

import builtins
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils import _python_dispatch


class Originals:
    """Remembers the functions of torch, NumPy, Python and of the grader's own namespaces."""

    def __init__(self, namespaces: Iterable[Mapping[str, Any]]) -> None:
        owners = [builtins, json, os, np, torch, torch.overrides, _python_dispatch]
        classes = [torch.Tensor, torch.nn.Module]
        self._held: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = []
        for owner in (*owners, *classes, torch.nn.functional, torch.autograd):
            self._hold(owner.__name__, vars(owner))
        for space in namespaces:
            name = space["__name__"]
            self._hold(name, space)
            for value in list(space.values()):
                if isinstance(value, type) and value.__module__ == name:
                    self._hold(value.__name__, vars(value))

    def _hold(self, name: str, space: Mapping[str, Any]) -> None:
        self._held.append((name, space, {k: v for k, v in space.items() if callable(v)}))

    def replaced(self) -> str:
        """The first name that leads elsewhere now; empty if all are as they were."""
        for owner, space, before in self._held:
            for name, value in before.items():
                if space.get(name) is not value:
                    return f"{owner}.{name}"[:200]
        return ""
