"""Compiled models run uncompiled while they are recorded: compiled code reports nothing."""

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from glassformer.tracing.model_lookup import ModuleTree

_lock = threading.Lock()
_switches: list[Any] = []  # PyTorch's switch, entered once, however many want it off


def find_compiled(tree: ModuleTree) -> list[str]:
    """The paths of modules that torch.compile has wrapped: whole, in place, or by `forward`.

    >>> layers = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    >>> layers[1].compile()
    >>> find_compiled(ModuleTree(layers))
    ['1']
    """
    # Compiling leaves one of these names in a module itself, where its class has them otherwise.
    marked = [
        part
        for part in tree.paths
        if "_compiled_call_impl" in (own := part.__dict__)
        or "forward" in own
        or "_orig_mod" in own["_modules"]
    ]
    paths = [strip_wrappers(tree.paths[part]) for part in marked if _is_compiled(part)]
    own = type(getattr(tree.model, "_orig_mod", tree.model)).__name__
    return list(dict.fromkeys(path or own for path in paths))


def strip_wrappers(path: str) -> str:
    """The path of a module as it would be without torch.compile.

    >>> strip_wrappers("layers.0._orig_mod.core")
    'layers.0.core'
    """
    return path.replace("_orig_mod.", "").removesuffix("_orig_mod").removesuffix(".")


def _is_compiled(part: nn.Module) -> bool:
    own = vars(part)
    return (
        "_orig_mod" in part._modules
        or own.get("_compiled_call_impl") is not None
        or hasattr(own.get("forward"), "_torchdynamo_orig_callable")
    )


def switch_compiling_off() -> Callable[[], None]:
    """For the whole process, as PyTorch's switch works; the last to undo it switches it back."""
    with _lock:
        if not _switches:
            off = torch.compiler.set_stance("force_eager")
            off.__enter__()
            _switches.append(off)
        else:
            _switches.append(_switches[0])
    return _switch_back


def _switch_back() -> None:
    with _lock:
        off = _switches.pop()
        if not _switches:
            off.__exit__(None, None, None)
