"""A module from a text: a learner's file, a solution, a fault, the checks of an exercise."""

import types
from typing import Any


def load_source(source: str, path: str, name: str) -> Any:
    """Run a text as a module of that name; errors carry the path."""
    module = types.ModuleType(name)
    module.__file__ = path
    exec(compile(source, path, "exec"), module.__dict__)
    return module
