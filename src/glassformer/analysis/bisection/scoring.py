"""Mask, bias, scale and softcap of a site in both runs: these are compared as they are."""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.analysis.bisection.aligned_runs import SitePair
from glassformer.analysis.bisection.measures import Apart
from glassformer.functional.cells import Extent, Tile, as_indices
from glassformer.tracing.site import Site

_MOST_CELLS = 1 << 24  # of a mask held at once
_CLOSE = 1e-6  # of a scale: written with six digits somewhere

Setting = Literal["mask", "bias", "scale", "softcap"]


def compare_scoring(pair: SitePair) -> Iterator[tuple[Setting, Apart, dict[str, Any]]]:
    """The settings that differ: which, by how much, and what the difference is."""
    found = _compare_masks(pair)
    if found is not None:
        yield "mask", _certain(found.pop("share")), found
    bias = _compare_biases(pair)
    if bias is not None:
        yield "bias", _certain(bias), {}
    a, b = pair.scales()
    if abs(a - b) > _CLOSE * max(abs(a), abs(b)):
        yield "scale", _certain(abs(b - a) / max(abs(a), 1e-30)), {"first": a, "second": b}
    a, b = pair.first.softcap, pair.second.softcap
    if a != b:
        size = 1.0 if a is None or b is None else abs(b - a) / a
        yield "softcap", _certain(size), {"first": a, "second": b}


def _certain(size: float) -> Apart:
    return Apart(size, size, torch.full((1, 1), size))


def _compare_masks(pair: SitePair) -> dict[str, Any] | None:
    """How the cells that b opens differ from those of a; None where they are the same."""
    n, columns, H = len(pair.positions), pair.n_columns, pair.first.n_heads
    step = max(1, _MOST_CELLS // max(1, H * columns))
    edges: list[tuple[int, int, int, int, int]] = []
    opened = closed = visible = 0
    whole = torch.zeros(columns, dtype=torch.long)  # in how many rows a column changed
    rows: list[int] = []
    for start in range(0, n, step):
        some = slice(start, start + step)
        a, b = (
            _cells(site, pair.rows[i + 1][some], columns, pair.sequence)
            for i, site in enumerate((pair.first, pair.second))
        )
        visible += int(a.sum())
        changed = a != b
        if not changed.any():
            continue
        opened, closed = opened + int((b & ~a).sum()), closed + int((a & ~b).sum())
        whole += changed.sum((0, 1))
        head = int(changed.flatten(1).any(1).nonzero()[0])
        for r in changed[head].any(-1).nonzero().flatten().tolist():
            rows.append(pair.positions[start + r])
            edges.append((*_edges(a[head, r]), *_edges(b[head, r]), rows[-1]))
    if not rows:
        return None
    found = {
        "share": (opened + closed) / max(visible, 1),
        "opened": opened,
        "closed": closed,
        "row": rows[0],
    }
    return found | _name_edges(edges, opened, closed, whole, columns)


def _name_edges(
    edges: list[tuple[int, int, int, int, int]],
    opened: int,
    closed: int,
    whole: Tensor,
    columns: int,
) -> dict[str, Any]:
    """An edge that moved by the same number everywhere, keys that changed for all, or neither."""
    inside = [e for e in edges if min(e[:4]) >= 0]  # rows that one of the two leaves empty say less
    right = {b - a for _, a, _, b, _ in inside}
    left = {b - a for a, _, b, _, _ in inside}
    if left == {0} and len(right) == 1:
        by = right.pop()
        future = max(last - query for *_, last, query in inside)
        return {"kind": "right", "by": by, "future": max(future, 0)}
    # A window moves with its query; keys that nobody sees any more, as of padding, do not.
    is_moving = any(len({edge[i] for edge in inside}) > 1 for i in (0, 2))
    if right == {0} and len(left) == 1 and is_moving:
        widths = [max(e[1] - e[0] + 1 for e in inside), max(e[3] - e[2] + 1 for e in inside)]
        return {"kind": "left", "by": -left.pop(), "first": widths[0], "second": widths[1]}
    keys = whole.nonzero().flatten().tolist()
    if len(keys) <= max(1, columns // 2) and (not opened or not closed):
        return {"kind": "keys", "keys": keys}
    return {"kind": "cells"}


def _edges(row: Bool[Tensor, " S"]) -> tuple[int, int]:
    """The first and the last open key of a row; −1 where there is none."""
    keys = row.nonzero().flatten()
    return (int(keys[0]), int(keys[-1])) if len(keys) else (-1, -1)


def _cells(site: Site, rows: list[int], columns: int, sequence: int) -> Bool[Tensor, "H R S"]:
    return site.allowed(rows=rows, cols=range(columns), sequence=sequence).cpu()


def _compare_biases(pair: SitePair) -> float | None:
    if pair.first.bias is None and pair.second.bias is None:
        return None
    n, columns, H = len(pair.positions), pair.n_columns, pair.first.n_heads
    step = max(1, _MOST_CELLS // max(1, H * columns))
    apart = size = 0.0
    for start in range(0, n, step):
        some = slice(start, start + step)
        a, b = (
            added_bias(site, pair.rows[i + 1][some], columns, pair.sequence)
            for i, site in enumerate((pair.first, pair.second))
        )
        seen = a.isfinite() & b.isfinite()  # −∞ hides a key: that is a mask
        a, b = a.masked_fill(~seen, 0.0), b.masked_fill(~seen, 0.0)
        apart, size = apart + float((b - a).square().sum()), size + float(a.square().sum())
    if apart**0.5 <= _CLOSE * max(size**0.5, 1e-30):
        return None
    return (apart / size) ** 0.5 if size else 1.0


def added_bias(site: Site, rows: list[int], columns: int, sequence: int) -> Float[Tensor, "H R S"]:
    """What is added to the scores of these rows, zeros without a bias."""
    H = site.n_heads
    if site.bias is None:
        return torch.zeros(H, len(rows), columns, dtype=torch.float64)
    extent, device = Extent(*site.shape), site.q.device
    tile = Tile(
        extent,
        as_indices(rows, extent.L, "rows", device),
        as_indices(range(columns), extent.S, "cols", device),
        device,
    )
    added = site.bias.fit_to(extent, device).tile(tile)
    added = added.expand(extent.B, H, len(rows), columns)
    return added[sequence].double().cpu()
