"""All heads of a run at a glance: their maps, their roles, what the model loses without them.

Of a long text, some queries are computed, each of them exactly: all would take seconds a head.
"""

import base64
import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from glassformer.analysis import head_effects
from glassformer.render.sampled_queries import even_positions, select_evenly
from glassformer.render.traced_roles import find_delimiters, find_roles
from glassformer.tracing import Site, Trace
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
_COARSER = 4  # times fewer lines in the first picture
_FEW_CELLS = 1 << 21  # of a head of a long text, for its role: a fifth of a second
_SOME_CELLS = 1 << 23  # for its sharpness: a third of one
_LEAST_LINES = 32
_MOST_COLUMNS = 512


def draw_maps(asked: MapsRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A small map of every head; memory is linear in the length of the text."""
    trace = memory.glance(asked, progress).trace
    numbers = range(len(trace)) if asked.sites is None else asked.sites
    sites = {number: select_site(trace, number) for number in numbers}
    found = []
    for i, (number, site) in enumerate(sites.items()):
        part = _divide(progress, i, len(sites))
        found.append({"site": number, **_draw_site(site, asked.size, part)})
        progress((i + 1) / len(sites))
    return {"sites": found}


def _draw_site(site: Site, size: int, progress: Progress) -> dict[str, Any]:
    _, H, L, S = site.shape
    if max(L, S) <= size:
        cells = site.weights()  # H L S
    elif is_long(site):
        rows = even_positions(L, min(size, L)).to(site.q.device)
        each = []
        for head in site.head_numbers:
            each.append(_pool_keys(site.weights(head=head, rows=rows), size))
            progress(len(each) / H)
        cells = torch.stack(each)
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
    _, _, L, S = site.shape
    lines = min(max(_CELLS // S, _LEAST_LINES), _MOST_QUERIES, L)
    queries = even_positions(L, -(-lines // _COARSER) if asked.coarse else lines)
    weights = site.weights(head=asked.head, rows=queries.to(site.q.device)).float()
    block = 1
    while block * _MOST_COLUMNS < S:
        block *= 2
    n = -(-S // block)
    padded = weights.new_full((len(weights), n * block), -1.0)
    padded[:, :S] = weights
    largest = padded.view(len(weights), n, block).max(-1)
    return {
        "queries": queries.tolist(),
        "block": block,
        "rows": len(weights),
        "cols": n,
        "form": "float32",
        "values": _encode(largest.values),
        "strongest": _encode(largest.indices.to(torch.int32)),
        "row_tops": _encode(weights.amax(-1)),
        "top": float(weights.max()),
    }


def _divide(progress: Progress, i: int, n: int) -> Progress:
    """The progress of the i-th of n parts."""
    return lambda share: progress((i + share) / n)


def _encode(values: Tensor) -> str:
    return base64.b64encode(values.cpu().contiguous().numpy().tobytes()).decode("ascii")


def _as_bytes(levels: Tensor) -> bytes:
    return levels.contiguous().numpy().tobytes()


def name_roles(asked: RolesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The role of every head, as `glassformer look` names it."""
    trace = memory.glance(asked, progress).trace
    found = []
    for number, site in enumerate(trace):
        # Heads of a long text one by one: whoever asks for a sketch meanwhile waits for one only.
        parts = [site.single_head(h) for h in site.head_numbers] if is_long(site) else [site]
        delimiters = find_delimiters(trace, site.keys, 0)
        of_site = _divide(progress, number, len(trace))
        for i, part in enumerate(parts):
            of_part = _divide(of_site, i, len(parts))
            found += _describe_heads(trace, number, part, delimiters, of_part)
    return {"heads": found}


def _describe_heads(
    trace: Trace, number: int, site: Site, delimiters: set[int], progress: Progress
) -> list[dict[str, Any]]:
    few = some = site
    if is_long(site):
        few = select_evenly(site, _FEW_CELLS // site.shape[3])
        some = select_evenly(site, min(_SOME_CELLS // site.shape[3], _MOST_QUERIES))
    roles = find_roles(trace, few, 0, delimiters=delimiters, report=_divide(progress, 0, 2))
    some.statistics(distance=False, progress=_divide(progress, 1, 2))  # kept, for the sharpness
    found = []
    for head, role, sharpness in zip(
        site.head_numbers, roles, some.sharpness().tolist(), strict=True
    ):
        entry = {"site": number, "head": head, "role": None, "score": None}
        if role is not None:
            entry |= {"role": role.role, "score": role.score}
        found.append(entry | {"sharpness": sharpness if math.isfinite(sharpness) else None})
    return found


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
