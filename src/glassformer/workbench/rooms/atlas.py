"""Atlas: the overview, the tiles and the cells of one head of a long text."""

import math
import re
from base64 import b64encode
from bisect import bisect_right
from collections import OrderedDict
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.analysis.pyramid import TILE, PooledTile, Pyramid
from glassformer.errors import TraceError
from glassformer.render.tokens import is_causal, is_cross, token_names
from glassformer.tracing import Site
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.atlas import (
    MOST_LABELS,
    CellRequest,
    FindRequest,
    HeadRequest,
    LabelsRequest,
    OpenRequest,
    SurveyRequest,
    TileRequest,
)

_MOST_HEADS = 4  # each keeps up to 50 MB, and what is linear in the length of its text
_CELLS_AT_ONCE = 1 << 25  # of the survey: below a second, after which tiles have their turn
_AROUND = 24  # tokens shown on each side of a place
_STRONGEST = 5
_MOST_CHARACTERS = 200  # of a label
_MOST_PLACES = 10_000


class _Head(NamedTuple):
    """A head with its pyramid and the tokens along its sides."""

    site: Site
    pyramid: Pyramid
    labels: dict[str, list[str]]
    joined: dict[str, "_Joined"]  # made when something is first sought


class _Joined(NamedTuple):
    """A text as it reads, and where each of its tokens begins in it."""

    text: str
    starts: list[int]


_HEADS: OrderedDict[tuple, _Head] = OrderedDict()


def open_head(asked: OpenRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """How large the matrix is, and how its tiles are cut."""
    site, pyramid, *_ = _recall_head(asked, memory, progress)
    return {
        "queries": pyramid.L,
        "keys": pyramid.S,
        "is_cross": is_cross(site),
        "is_causal": is_causal(site) is True,
        "tile": TILE,
        "top_level": pyramid.top_level,
        "middle_level": pyramid.middle,
    }


def survey_head(asked: SurveyRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The next part of the overview; what has been surveyed already is part of the answer."""
    pyramid = _recall_head(asked, memory, progress).pyramid
    level = pyramid.top_level
    start = asked.start >> level << level
    if start >= pyramid.L:
        raise TraceError(f"The text has {pyramid.L:,} queries; got start={asked.start:,}.")
    step = max(_CELLS_AT_ONCE // pyramid.S >> level, 1) << level
    stop = min(max(start, pyramid.n_surveyed) + step, pyramid.L)
    stop = pyramid.L if stop == pyramid.L else stop >> level << level
    lines = slice(start >> level, (stop + (1 << level) - 1) >> level)
    columns = slice(0, (pyramid.S + (1 << level) - 1) >> level)
    found = pyramid.lines(
        level, lines, columns, asked.pool, has_first=asked.has_first, progress=progress
    )
    levels = range(level + 1) if stop == pyramid.L else ()
    return {
        "start": start,
        "stop": stop,
        "share": pyramid.share,
        "tops": [pyramid.top(each, asked.pool, asked.has_first) for each in levels],
        "tile": _pack(found, pyramid, level, asked),
    }


def cut_tile(asked: TileRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """One tile of one level."""
    pyramid = _recall_head(asked, memory, progress).pyramid
    _check_level(asked.level, pyramid)
    found = pyramid.tile(
        asked.level,
        asked.row,
        asked.col,
        asked.pool,
        has_first=asked.has_first,
        progress=progress,
    )
    return _pack(found, pyramid, asked.level, asked)


def read_cell(asked: CellRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """One cell: its numbers, its places in the text, and what else the query attends to."""
    _, pyramid, labels, _ = _recall_head(asked, memory, progress)
    _check_level(asked.level, pyramid)
    query, key = asked.query << asked.level, (asked.key or 0) << asked.level
    if query >= pyramid.L or key >= pyramid.S:
        raise TraceError(
            f"The matrix has {pyramid.L:,} queries and {pyramid.S:,} keys; "
            f"got query={query:,}, key={key:,}."
        )
    if asked.level > 0 and asked.key is not None:
        block = asked.query, asked.key
        query, key = pyramid.strongest(asked.level, *block, has_first=asked.has_first)
    scores, visible = pyramid.row(query)
    weights = (scores - scores.logsumexp(-1)).exp().masked_fill(~visible, 0.0)
    best = weights.topk(min(_STRONGEST, pyramid.S))
    key = int(best.indices[0]) if asked.key is None else key
    strongest = [
        {"key": k, "label": labels["key"][k], "weight": weight}
        for k, weight in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        if weight > 0
    ]
    is_visible = bool(visible[key])
    return {
        "query": query,
        "key": key,
        "weight": _finite(float(weights[key])),
        "score": _finite(float(scores[key])) if is_visible else None,
        "is_visible": is_visible,
        "rank": 1 + int((weights > weights[key]).sum()) if is_visible else None,
        "n_visible": int(visible.sum()),
        "query_text": _surroundings(labels["query"], query),
        "key_text": _surroundings(labels["key"], key),
        "strongest": strongest,
    }


def list_labels(asked: LabelsRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """Tokens along one side."""
    labels = _recall_head(asked, memory, progress).labels[asked.axis]
    if asked.stop - asked.start > MOST_LABELS:
        raise TraceError(
            f"At most {MOST_LABELS:,} labels are answered at once; got {asked.start:,} to "
            f"{asked.stop:,}."
        )
    return {"start": asked.start, "labels": labels[asked.start : asked.stop]}


def find_text(asked: FindRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The next token at which a text begins, whatever its case; words may span several tokens."""
    head = _recall_head(asked, memory, progress)
    if asked.axis not in head.joined:
        labels = head.labels[asked.axis]
        head.joined[asked.axis] = _Joined(
            "".join(labels), [0, *accumulate(map(len, labels))][: len(labels)]
        )
    text, starts = head.joined[asked.axis]
    sought = re.compile(re.escape(asked.sought.replace(" ", "␣")), re.IGNORECASE)
    places: list[int] = []
    for match in sought.finditer(text):
        place = bisect_right(starts, match.start()) - 1
        if not places or place > places[-1]:
            places.append(place)
        if len(places) == _MOST_PLACES:
            break
    after = [place for place in places if place >= asked.start]
    return {"place": next(iter(after or places), None), "n_places": len(places)}


def _recall_head(asked: HeadRequest, memory: Memory, progress: Progress) -> _Head:
    """The head that is asked for; what was looked at longest ago is forgotten."""
    reading = memory.glance(asked, progress)
    sites = list(reading.trace)
    if asked.site >= len(sites):
        raise TraceError(f"The sites of this run are 0 … {len(sites) - 1}; got site={asked.site}.")
    site = sites[asked.site]
    key = (id(site), asked.head, asked.sequence)
    if key not in _HEADS:
        pyramid = _build_pyramid(site, asked.head, asked.sequence)
        for (known, _, sequence), head in _HEADS.items():
            if (known, sequence) == (id(site), asked.sequence):  # all heads read the same text
                labels, joined = head.labels, head.joined
                break
        else:
            queries, keys = token_names(reading.trace, site, asked.sequence)
            labels, joined = {"query": _shorten(queries), "key": _shorten(keys)}, {}
        _HEADS[key] = _Head(site, pyramid, labels, joined)  # holds the site: its id is its own
        while len(_HEADS) > _MOST_HEADS:
            _HEADS.popitem(last=False)
    _HEADS.move_to_end(key)
    return _HEADS[key]


def _build_pyramid(site: Site, head: int, sequence: int) -> Pyramid:
    """On a GPU, if there is one with enough room: it surveys a long text a hundred times faster."""
    if torch.cuda.is_available():
        with suppress(torch.cuda.OutOfMemoryError):
            return Pyramid(site.to("cuda"), head, sequence)
    return Pyramid(site, head, sequence)


def _check_level(level: int, pyramid: Pyramid) -> None:
    if level > pyramid.top_level:
        raise TraceError(
            f"The levels are 0 … {pyramid.top_level}; got level={level}. One tile of the last one "
            "shows everything."
        )


def _pack(
    found: PooledTile, pyramid: Pyramid, level: int, asked: SurveyRequest | TileRequest
) -> dict[str, Any]:
    form = torch.float32 if level == 0 else torch.bfloat16
    return {
        "rows": found.values.shape[0],
        "cols": found.values.shape[1],
        "form": str(form).removeprefix("torch."),
        "values": _encode(found.values.to(form)),
        "row_tops": _encode(found.row_tops.float()),
        "top": pyramid.top(level, asked.pool, asked.has_first),
    }


def _encode(values: Tensor) -> str:
    return b64encode(values.cpu().contiguous().view(torch.uint8).numpy().tobytes()).decode()


def _surroundings(labels: list[str], place: int) -> dict[str, Any]:
    start = max(place - _AROUND, 0)
    return {"start": start, "labels": labels[start : place + _AROUND + 1]}


def _shorten(labels: list[str]) -> list[str]:
    most = _MOST_CHARACTERS
    return [label if len(label) <= most else f"{label[: most - 1]}…" for label in labels]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
