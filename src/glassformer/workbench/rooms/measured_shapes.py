"""Shapes of a model that cannot be drawn, as one run shows them: modules and attention sites."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from glassformer.models import PRESETS
from glassformer.workbench.foreign_models import ForeignModel
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.shapes import MeasuredShapesRequest

_MOST_MODULES = 200


def measure_shapes(
    asked: MeasuredShapesRequest, memory: Memory, progress: Progress
) -> dict[str, Any]:
    """Modules with their parameters, and what each attention site was given."""
    reading = memory.glance(asked, progress)
    source = reading.source
    model: nn.Module | None = source.model if isinstance(source, ForeignModel) else source
    modules = [] if model is None else list(_list_modules(model))
    return {
        "name": asked.model,
        "parameters": None if model is None else _count(model),
        "modules": modules[:_MOST_MODULES],
        "n_modules": len(modules),
        "sites": [
            {"name": site.name, **{name: list(getattr(site, name).shape) for name in "qkv"}}
            for site in reading.trace
        ],
        "presets": list(PRESETS),
    }


def _list_modules(module: nn.Module, path: str = "", depth: int = 0) -> Iterator[dict[str, Any]]:
    for name, child in module.named_children():
        own = f"{path}.{name}".lstrip(".")
        layers = list(child) if isinstance(child, nn.ModuleList) else []
        is_row = len({(type(each), _count(each)) for each in layers}) == 1
        first = layers[0] if is_row else child
        if n := _count(child):
            yield {
                "name": f"{own}.0 … {len(layers) - 1}" if is_row else own,
                "kind": type(first).__name__,
                "depth": depth,
                "count": len(layers) if is_row else 1,
                "parameters": n,
            }
            yield from _list_modules(first, f"{own}.0" if is_row else own, depth + 1)


def _count(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())
