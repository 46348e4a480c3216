"""Attention without rotary positions: queries and keys of a site are not rotated."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from glassformer.errors import InterventionError
from glassformer.tracing.interventions.editor import Editor
from glassformer.tracing.interventions.values import Swap
from glassformer.tracing.patches import listen
from glassformer.tracing.recorder import Recorder

_TABLES = ("position_embeddings", "tables")  # of cosines and sines, as attention modules take them


def attach_positions(recorder: Recorder, editor: Editor, undo: list[Callable[[], None]]) -> None:
    """Leave the queries and keys of these sites as they are before they are rotated."""
    assert recorder.layout is not None
    parents = {child: m for m in recorder.source.tree.paths for child in m.children()}
    for module, place in recorder.layout.places.items():
        swap = editor.find_swapped_positions(place.name)
        if swap is None:
            continue
        layer = parents[module] if not list(module.children()) else module  # a core has no tables
        tap = recorder.tap(around=partial(_run_unrotated, swap, editor), group="stream")
        undo.append(listen(layer, "forward", tap))


def _run_unrotated(
    swap: Swap,
    editor: Editor,
    call: Callable[..., Any],
    _module: nn.Module,
    args: tuple,
    options: dict[str, Any],
) -> Any:
    name = next((n for n in _TABLES if options.get(n) is not None), None)
    if name is None:
        raise InterventionError(
            f"{swap} needs a site with rotary positions; what {swap.place} is given has none."
        )
    editor.applied.add(swap)
    cos, sin = options[name]
    return call(*args, **{**options, name: (torch.ones_like(cos), torch.zeros_like(sin))})
