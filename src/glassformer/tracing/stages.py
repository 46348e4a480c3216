"""Stages of a pipeline: modules with some layers of a model, under the numbers of the model.

A stage may keep the model's paths (layers.2, layers.3) or count its layers from 0. Then the numbers
follow from `layer_idx`, which attention of transformers carries with it, or from `first_layer`.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from torch import nn

from glassformer.errors import TraceError
from glassformer.tracing.head_shards import find_rank
from glassformer.tracing.layout import Place
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.patches import only_group, replace_method
from glassformer.tracing.stream_listener import find_blocks


class Stage(NamedTuple):
    """The layers that a module has, by their numbers in the model."""

    layers: tuple[int, ...]  # empty where nothing asks for them
    shift: int  # from the numbers in the paths to those of the model
    is_part: bool  # whether other processes have the other layers


def find_stage(
    tree: ModuleTree,
    places: dict[nn.Module, Place],
    config: Any,
    first_layer: int | None,
) -> Stage:
    """Which layers a module has; outside of a process group it is a part of nothing."""
    is_alone = find_rank() is None
    if is_alone and first_layer is None:
        return Stage(layers=(), shift=0, is_part=False)
    blocks = find_blocks(tree, places)
    local = sorted({n for block in blocks if (n := _find_number(tree.paths[block])) is not None})
    stacks = {place.stack for place in places.values() if place.layer is not None}
    shift = 0
    if first_layer is not None:
        if len(stacks) != 1 or not local or first_layer < 0:
            raise TraceError(
                "first_layer must be the number, 0 or more, of the first layer of a module with "
                f"one stack of layers; got first_layer={first_layer} for a module with "
                f"{len(stacks)}."
            )
        shift = first_layer - local[0]
    elif len(stacks) == 1:
        shift = _find_shift(places)
    layers = tuple(n + shift for n in local)
    is_part = not is_alone and (
        first_layer is not None or _is_cut(tree.model, places, layers, config)
    )
    return Stage(layers, shift, is_part)


def _find_number(path: str) -> int | None:
    last = path.rpartition(".")[2]
    return int(last) if last.isdecimal() else None


def _find_shift(places: dict[nn.Module, Place]) -> int:
    """How far the numbers that attention carries lie behind those of its path."""
    apart = set()
    for module, place in places.items():
        carried = getattr(module, "layer_idx", None)
        if isinstance(carried, int) and place.layer is not None:
            apart.add(carried - place.layer)
    return max(apart.pop(), 0) if len(apart) == 1 else 0


def _is_cut(
    model: nn.Module, places: dict[nn.Module, Place], layers: tuple[int, ...], config: Any
) -> bool:
    """Whether layers, the embedding or the last norm of a model are missing."""
    if not layers:
        return False
    if not hasattr(model, "get_input_embeddings") or layers[0] > 0:  # no model, but parts of one
        return True
    total = getattr(config, "num_hidden_layers", None)
    has_numbers = any(isinstance(getattr(m, "layer_idx", None), int) for m in places)
    if has_numbers and isinstance(total, int) and len(layers) < total:
        return True
    ends = {**model._modules, **getattr(model, "base_model", model)._modules}
    return any(
        part is None or isinstance(part, nn.Identity)
        for name, part in ends.items()
        if re.search(r"emb|wte|norm|ln_f", name)
    )


def skip_rehearsals(undo: list[Callable[[], None]]) -> None:
    """Silence the pass by which PyTorch's schedules find out the shapes between stages.

    It runs every stage once, the later ones on memory that holds anything.
    """
    from torch.distributed.pipelining import PipelineStage

    if hasattr(PipelineStage, "_prepare_forward_infra"):
        undo.append(replace_method(PipelineStage, "_prepare_forward_infra", _silence))


def _silence(original: Any) -> Any:
    @wraps(original)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        with only_group("rehearsal"):  # no one listens to this group
            return original(self, *args, **options)

    return method
