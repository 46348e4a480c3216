"""A trace in parts: every rank writes its own file into one folder, which opens as one trace.

    run.trace/
      rank-0-of-2.trace   heads 0 … 3 of every layer
      rank-1-of-2.trace   heads 4 … 7

Nothing is gathered: no rank ever holds what another recorded. Runs of one text are put together
when they are read: heads beside each other, layers below each other. Ranks that read texts of
their own, with all heads and layers, are runs after each other. The later stages of a pipeline see
no text: theirs is that of the first. A rank may have several stages; the file of each is named
after its first layer, as in rank-0-of-2-layer-4.trace.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional import ALiBi, Bias, Explicit, ExplicitBias, Mask
from glassformer.functional.cells import as_4d
from glassformer.tracing.mask_codec import encode_mask
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Stream
from glassformer.tracing.text_labels import EMBEDDED
from glassformer.tracing.trace import Run, Trace

_FILE = re.compile(r"rank-(\d+)-of-(\d+)(?:-layer-(\d+))?\.trace")


class Shard(NamedTuple):
    """The file of a rank, or of one of its stages."""

    rank: int
    n_ranks: int
    first_layer: int  # -1 where ranks have all layers
    path: Path

    @classmethod
    def at(cls, path: Path) -> "Shard | None":
        """What the name of a file says; None if it is not one of these."""
        match = _FILE.fullmatch(path.name)
        return match and cls(int(match[1]), int(match[2]), int(match[3] or -1), path)


def shard_path(folder: Path, trace: Trace) -> Path:
    """The file of a part; the folder is created, and may hold parts of a trace alone."""
    assert trace.part is not None
    rank, n_ranks = trace.part
    if folder.is_file():
        raise TraceError(f"A trace in parts is a folder; {folder} is a file. Use another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(f"{folder} could not be created: {error.strerror}.") from None
    for path in sorted(folder.iterdir()):
        found = Shard.at(path)
        if not path.name.startswith(".") and (found is None or found.n_ranks != n_ranks):
            raise TraceError(
                f"The folder of a trace of {n_ranks} ranks must hold their files alone; {folder} "
                f"has {path.name}. Use another name, or remove it."
            )
    layers = _find_layers(trace)
    stage = f"-layer-{min(layers)}" if layers else ""
    return folder / f"rank-{rank}-of-{n_ranks}{stage}.trace"


def find_shards(folder: Path) -> list[Shard]:
    """The files of all ranks, in order; an incomplete folder raises a TraceError."""
    found = sorted(shard for path in folder.iterdir() if (shard := Shard.at(path)) is not None)
    counts = {shard.n_ranks for shard in found}
    if len(counts) != 1:
        raise TraceError(
            f"{folder} must be a file, or a folder with the parts of one trace; it has "
            f"{len(found)} of them."
        )
    missing = set(range(counts.pop())) - {shard.rank for shard in found}
    if missing:
        raise TraceError(
            f"{folder} lacks the part of rank {min(missing)}: that process has not saved its trace."
        )
    return found


@dataclass(eq=False, kw_only=True)
class _Piece:
    """A run as one rank recorded it, or as several did together."""

    run: Run
    layers: frozenset[int]  # of a stage; empty where ranks have all layers

    @property
    def knows_text(self) -> bool:
        return not self.layers or 0 in self.layers


class Part(NamedTuple):
    """What a rank recorded, or one of its stages."""

    rank: int
    trace: Trace
    layers: frozenset[int]

    @classmethod
    def of(cls, rank: int, trace: Trace) -> "Part":
        return cls(rank, trace, _find_layers(trace))


def join_traces(parts: list[Part]) -> Trace:
    """The trace that ranks recorded together: stage by stage, in the order of the ranks."""
    parts = sorted(parts, key=lambda part: min(part.layers, default=0))
    model = parts[0].trace.model
    runs: list[Run] = []
    for i in range(max(len(part.trace.runs) for part in parts)):
        joined: list[_Piece] = []
        for part in parts:
            if i < len(part.trace.runs):
                _add_piece(joined, _Piece(run=part.trace.runs[i], layers=part.layers))
        _check_stages(joined, parts, model)
        runs += [piece.run for piece in joined]
    for run in runs:
        for site in run.sites.values():
            if site.heads == tuple(range(site.n_heads)):
                site.heads = None
    return Trace(runs, {name: each for name, each in model.items() if name != "stage"})


def _find_layers(part: Trace) -> frozenset[int]:
    found = part.model.get("stage", [])
    if not isinstance(found, list) or not all(type(n) is int and n >= 0 for n in found):
        raise TraceError(f"a stage must name its layers by numbers; it has {found!r}")
    return frozenset(found)


def _check_stages(joined: list[_Piece], parts: list[Part], model: Any) -> None:
    """Every run must have all layers: stages that count from 0 each would lie above each other."""
    layers = {number for part in parts for number in part.layers}
    if not layers:
        return
    config = model.get("config")
    total = config.get("num_hidden_layers") if isinstance(config, dict) else None
    n = max(layers) + 1
    n = max(n, total) if isinstance(total, int) else n
    is_same = len({_is_unknown(piece.run) for piece in joined}) <= 1
    if is_same and all(piece.layers == frozenset(range(n)) for piece in joined):
        return
    ordered = sorted(parts, key=lambda part: part.rank)
    named = ", ".join(f"rank {part.rank} has {_list_layers(part.layers)}" for part in ordered)
    raise TraceError(
        f"The stages of each run must have all of its {n} layers between them; {named}. Watch "
        "every stage for as many passes, with first_layer= where it counts its layers from 0."
    )


def _list_layers(layers: frozenset[int]) -> str:
    return " ".join(map(str, sorted(layers))) or "none"


def _is_unknown(run: Run) -> bool:
    """Whether embeddings were read: what a stage is given that wrongly counts from 0."""
    text = run.texts.get("tokens")
    return text is not None and bool((text.tokens == EMBEDDED).all())


def _add_piece(joined: list[_Piece], piece: _Piece) -> None:
    """Put a rank's run into the first that it is a part of, or behind them."""
    for i, other in enumerate(joined):
        if _is_complement(other, piece):
            run = _join_runs(other, piece)
            joined[i] = _Piece(run=run, layers=other.layers | piece.layers)
            return
    joined.append(piece)


def _is_complement(a: _Piece, b: _Piece) -> bool:
    """Whether two runs read one text, and have no head of a layer in common."""
    if a.knows_text and b.knows_text:
        texts, others = a.run.texts, b.run.texts
        for name in texts.keys() & others.keys():
            if not torch.equal(texts[name].tokens, others[name].tokens):
                return False
    if _are_stages(a, b) and not all(
        _is_continued(a.run.streams[name], b.run.streams[name])
        for name in a.run.streams.keys() & b.run.streams.keys()
    ):
        return False
    sites, others = a.run.sites, b.run.sites
    return all(_is_disjoint(sites[name], others[name]) for name in sites.keys() & others.keys())


def _are_stages(a: _Piece, b: _Piece) -> bool:
    """Whether two runs have different layers of a model."""
    return bool(a.layers) and bool(b.layers) and not a.layers & b.layers


def _is_continued(a: Stream, b: Stream) -> bool:
    """Whether a stage reads what the one before it returned."""
    return torch.equal(a.end, b.start)


def _is_disjoint(a: Site, b: Site) -> bool:
    return a.heads is not None and b.heads is not None and not set(a.heads) & set(b.heads)


def _join_runs(first: _Piece, second: _Piece) -> Run:
    a, b = first.run, second.run
    sites = dict(a.sites)
    for name, site in b.sites.items():
        sites[name] = _join_sites(sites[name], site) if name in sites else site
    refusals = {**b.refusals, **a.refusals}
    streams = {**b.streams, **a.streams}
    if _are_stages(first, second):
        for name in list(streams):
            if name in a.streams and name in b.streams:
                steps = [*a.streams[name].steps, *b.streams[name].steps]
                streams[name] = replace(a.streams[name], steps=steps, _last=("", None))
            else:
                del streams[name]
                refusals.setdefault(f"{name}.stream", "not every stage has recorded it")
    return Run(sites, {**b.texts, **a.texts}, refusals, streams)


def _join_sites(a: Site, b: Site) -> Site:
    assert a.heads is not None and b.heads is not None
    if (a.rows, a.shape[2:], a.scale, a.softcap) != (b.rows, b.shape[2:], b.scale, b.softcap):
        raise TraceError(f"the parts of {a.name} must have the same rows, keys and scale")
    if a.heads[0] > b.heads[0]:
        a, b = b, a
    outs = None if a.out is None or b.out is None else torch.cat([a.out, b.out], dim=1)
    q, k, v = (torch.cat([getattr(x, n) for x in (a, b)], dim=1) for n in ("q", "k", "v"))
    assert a.heads is not None and b.heads is not None
    return replace(
        a,
        q=q,
        k=k,
        v=v,
        out=outs,
        mask=_join_heads(a.mask, b.mask, a.name),
        bias=_join_heads(a.bias, b.bias, a.name),
        heads=a.heads + b.heads,
        _kept={},
    )


def _join_heads(a: Any, b: Any, name: str) -> Any:
    """A mask or bias of both: the same one, or that of each head beside the other."""
    if _is_same(a, b):
        return a
    if isinstance(a, ALiBi) and isinstance(b, ALiBi):
        return replace(a, slopes=torch.cat([a.slopes, b.slopes]))
    for kind in (Explicit, ExplicitBias):
        if isinstance(a, kind) and isinstance(b, kind):
            return replace(a, tensor=torch.cat([as_4d(a.tensor), as_4d(b.tensor)], dim=1))
    raise TraceError(f"the parts of {name} have masks or biases that cannot be joined")


def _is_same(a: Mask | Bias | None, b: Mask | Bias | None) -> bool:
    tensors: list[dict[str, Tensor]] = [{}, {}]
    plain = [encode_mask(part, "part", kept) for part, kept in zip((a, b), tensors, strict=True)]
    if plain[0] != plain[1]:
        return False
    return all(torch.equal(t, tensors[1][name]) for name, t in tensors[0].items())
