"""Weights that accelerate keeps elsewhere: on disk or in CPU memory, until their module runs.

Outside of its pass an offloaded module holds tensors on the meta device, which have no numbers.
"""

from typing import Any

from torch import Tensor, nn

from glassformer.errors import TraceError


def read_weight(module: nn.Module, name: str) -> Tensor | None:
    """A parameter of a module by its numbers, wherever they are; None where it has none."""
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        return None
    if not found.is_meta:
        return found.detach()
    hook: Any = getattr(module, "_hf_hook", None)
    for each in getattr(hook, "hooks", (hook,)):  # a chain of them, or one
        weights = getattr(each, "weights_map", None)
        if weights is not None:
            return weights[name].detach()
    raise TraceError(f"the {name} of {type(module).__name__} is offloaded, and cannot be read")
