"""Compiled models run uncompiled while they are recorded: in compiled code nothing is seen."""

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_lock = threading.Lock()
_switches: list[Any] = []  # PyTorch's switch, once for everybody who wants it off


def compiled_parts(model: nn.Module) -> list[str]:
    """The paths of modules that torch.compile has wrapped: whole, in place, or by `forward`.

    >>> layers = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    >>> layers[1].compile()
    >>> compiled_parts(layers)
    ['1']
    """
    found = [path for path, part in model.named_modules() if _is_compiled(part)]
    paths = [path.replace("_orig_mod.", "").removesuffix("_orig_mod") for path in found]
    own = type(getattr(model, "_orig_mod", model)).__name__
    return list(dict.fromkeys(path or own for path in paths))


def _is_compiled(part: nn.Module) -> bool:
    return (
        "_orig_mod" in part._modules
        or getattr(part, "_compiled_call_impl", None) is not None
        or hasattr(vars(part).get("forward"), "_torchdynamo_orig_callable")
    )


def switch_compiling_off() -> Callable[[], None]:
    """For the whole process, as PyTorch's switch does; the last one to undo it turns it back."""
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
