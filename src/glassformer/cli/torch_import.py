"""torch is imported without the garbage collector: it sees everything and finds nothing to free."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


@contextmanager
def torch_without_gc() -> Iterator[None]:
    """Pause the collector while torch is imported, if it is imported here, and only then.

    Modules are kept: looking through them for garbage takes a fifth of the import, and once more
    as long when the process ends. Commands import torch where they need it, so its import is
    found by name.
    """
    finder = _TorchFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:  # no torch was needed
            sys.meta_path.remove(finder)


class _TorchFinder:
    """Finds torch as the finders after it do, and pauses the collector while its code runs."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_without_gc(module: ModuleType) -> None:
            was_enabled = gc.isenabled()
            gc.disable()
            try:
                execute(module)
            finally:
                gc.freeze()  # nor are they looked through later
                if was_enabled:
                    gc.enable()

        spec.loader.exec_module = execute_without_gc
        return spec
