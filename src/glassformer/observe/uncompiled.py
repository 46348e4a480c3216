"""Compiled models run uncompiled while they are recorded: in compiled code nothing is seen."""

import threading
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import nn

from glassformer.errors import RecordingWarning

_lock = threading.Lock()
_state: dict[str, object] = {"users": 0}


def compiled_parts(model: nn.Module) -> list[str]:
    """The paths of modules that torch.compile has wrapped: whole, in place, or by `forward`."""
    return [path or type(model).__name__ for path, part in _named(model) if _is_compiled(part)]


def _named(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for path, part in model.named_modules():
        yield path.replace("_orig_mod.", "").removesuffix("_orig_mod").rstrip("."), part


def _is_compiled(part: nn.Module) -> bool:
    forward = vars(part).get("forward")
    return (
        "_orig_mod" in part._modules
        or getattr(part, "_compiled_call_impl", None) is not None
        or hasattr(forward, "_torchdynamo_orig_callable")
    )


def run_uncompiled(model: nn.Module, verb: str) -> tuple[str, Callable[[], None]] | None:
    """Switch torch.compile off; what to say of it, and how to undo it. None if nothing is compiled.

    The switch is PyTorch's and holds for the whole process; the last one to leave turns it back.
    """
    if not (parts := compiled_parts(model)):
        return None
    with _lock:
        if not _state["users"]:
            _state["stance"] = stance = torch.compiler.set_stance("force_eager")
            stance.__enter__()
        _state["users"] += 1  # type: ignore[operator]
    listed = ", ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")
    note = (
        f"compiled parts ({listed}) ran uncompiled while they were recorded, and rounding may "
        "differ from the compiled model's"
    )
    return note, _compile_again


def warn_uncompiled(note: str, verb: str, stacklevel: int) -> None:
    warnings.warn(f"{verb}: {note}.", RecordingWarning, stacklevel=stacklevel)


def _compile_again() -> None:
    with _lock:
        _state["users"] -= 1  # type: ignore[operator]
        if not _state["users"]:
            _state.pop("stance").__exit__(None, None, None)  # type: ignore[attr-defined]
