"""All heads of a run at a glance: their maps, their roles, what the model loses without them.

Of a long text, some queries are computed, each of them exactly: all would take seconds a head.
"""

import base64
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from glassformer.analysis import head_effects
from glassformer.render.sampled_queries import even_positions, select_evenly
from glassformer.render.traced_roles import find_roles
from glassformer.tracing import Site
from glassformer.tracing.selection import select_heads
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.look import is_long, select_site
from glassformer.workbench.wire.heads import (
    EffectsRequest,
    MapsRequest,
    RolesRequest,
    SketchRequest,
)

_LEVELS = 255
_MOST_QUERIES = 128
_CELLS = 1 << 20  # of a sketch: a twentieth of a second
_LEAST_LINES = 32
_MOST_COLUMNS = 512


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
    elif is_long(site):
        some = select_evenly(site, size)
        cells = torch.stack([_pool_keys(each, size) for each in some.weights()])
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


def _pool_keys(weights: Tensor, size: int) -> Tensor:
    """The largest weight of each of `size` runs of keys, as even as they can be."""
    edges = torch.linspace(0, weights.shape[1], min(size, weights.shape[1]) + 1).long().tolist()
    return torch.stack([weights[:, a:b].amax(-1) for a, b in pairwise(edges)], dim=-1)


def sketch_head(asked: SketchRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A head of a long text, at once: evenly spaced queries, each exact, their keys pooled."""
    site = select_site(memory.glance(asked, progress).trace, asked.site)
    S = site.shape[3]
    n_lines = min(max(_CELLS // S, _LEAST_LINES), _MOST_QUERIES)
    some = select_evenly(_isolate_head(site, asked.head), n_lines)
    weights = some.weights(head=asked.head).float()
    block = 1
    while block * _MOST_COLUMNS < S:
        block *= 2
    n = -(-S // block)
    padded = weights.new_full((len(weights), n * block), -1.0)
    padded[:, :S] = weights
    largest = padded.view(len(weights), n, block).max(-1)
    return {
        "queries": even_positions(site.shape[2], len(weights)).tolist(),
        "block": block,
        "rows": len(weights),
        "cols": n,
        "form": "float32",
        "values": _encode(largest.values),
        "strongest": _encode(largest.indices.to(torch.int32)),
        "row_tops": _encode(weights.amax(-1)),
        "top": float(weights.max()),
    }


def _isolate_head(site: Site, head: int) -> Site:
    """The site as if it had this head alone."""
    site._check(head, 0)  # names the heads that there are
    index = site.head_numbers.index(head)
    own = index // (site.shape[1] // site.k.shape[1])
    mask, bias = (select_heads(part, (index,)) for part in (site.mask, site.bias))
    return replace(
        site,
        q=site.q[:, [index]],
        k=site.k[:, [own]],
        v=site.v[:, [own]],
        out=None,
        mask=mask,
        bias=bias,
        heads=(head,),
        _kept={},
    )


def _encode(values: Tensor) -> str:
    return base64.b64encode(values.cpu().contiguous().numpy().tobytes()).decode("ascii")


def _as_bytes(levels: Tensor) -> bytes:
    return levels.contiguous().numpy().tobytes()


def name_roles(asked: RolesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The role of every head, as `glassformer look` names it."""
    trace = memory.glance(asked, progress).trace
    found = []
    for number, whole in enumerate(trace):
        site = select_evenly(whole, _MOST_QUERIES) if is_long(whole) else whole
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
