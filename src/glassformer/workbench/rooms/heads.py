"""All heads of a run at a glance: their maps, their roles, what the model loses without them."""

import base64
import math
from typing import Any

from torch import Tensor

from glassformer.analysis import head_effects
from glassformer.render.traced_roles import find_roles
from glassformer.tracing import Site
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.look import select_site
from glassformer.workbench.wire.heads import EffectsRequest, MapsRequest, RolesRequest

_LEVELS = 255


def draw_maps(asked: MapsRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A small map of every head; memory is linear in the length of the text."""
    trace = memory.glance(asked, progress).trace
    numbers = range(len(trace)) if asked.sites is None else asked.sites
    sites = {number: select_site(trace, number) for number in numbers}
    found = []
    for i, (number, site) in enumerate(sites.items()):
        found.append({"site": number, **_draw_site(site, asked.size)})
        progress((i + 1) / len(sites))
    return {"sites": found}


def _draw_site(site: Site, size: int) -> dict[str, Any]:
    _, _, L, S = site.shape
    if max(L, S) <= size:
        cells = site.weights()  # H L S
    else:
        pooled = site.statistics(map_size=size).map
        assert pooled is not None
        cells = pooled.maximum[0]
    cells = cells.detach().float().cpu().nan_to_num(0.0)
    tops = cells.flatten(1).amax(-1)
    levels = (cells / tops.clamp(min=1e-30)[:, None, None] * _LEVELS).round().byte()
    return {
        "rows": cells.shape[1],
        "cols": cells.shape[2],
        "heads": [
            {"head": head, "top": top, "cells": base64.b64encode(cells).decode("ascii")}
            for head, top, cells in zip(
                site.head_numbers, tops.tolist(), map(_as_bytes, levels), strict=True
            )
        ],
    }


def _as_bytes(levels: Tensor) -> bytes:
    return levels.contiguous().numpy().tobytes()


def name_roles(asked: RolesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The role of every head, as `glassformer look` names it."""
    trace = memory.glance(asked, progress).trace
    found = []
    for number, site in enumerate(trace):
        both = zip(find_roles(trace, site, 0), site.sharpness().tolist(), strict=True)
        for head, (role, sharpness) in zip(site.head_numbers, both, strict=True):
            entry = {"site": number, "head": head, "role": None, "score": None}
            if role is not None:
                entry |= {"role": role.role, "score": role.score}
            found.append(entry | {"sharpness": sharpness if math.isfinite(sharpness) else None})
        progress((number + 1) / len(trace))
    return {"heads": found}


def measure_effects(asked: EffectsRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """What the predictions lose without each head."""
    trace = memory.reading(asked, progress).trace
    found = head_effects(trace, report=lambda done, total: progress(done / total))
    numbers = {name: number for number, name in enumerate(trace.names)}
    losses = [None] * len(found.heads) if found.loss is None else found.loss.tolist()
    return {
        "heads": [
            {"site": numbers[site], "head": head, "divergence": divergence, "loss": loss}
            for (site, head), divergence, loss in zip(
                found.heads, found.divergence.tolist(), losses, strict=True
            )
        ]
    }
