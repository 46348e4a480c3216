"""A trace in parts: every rank writes its own file into one folder, which opens as one trace.

    run.trace/
      rank-0-of-2.trace   heads 0 … 3 of every layer
      rank-1-of-2.trace   heads 4 … 7

Nothing is gathered: no rank ever holds what another recorded. Runs of one text are put together
when they are read: heads beside each other, layers below each other. Ranks that read texts of
their own, with all heads and layers, are runs after each other.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional import ALiBi, Bias, Explicit, ExplicitBias, Mask
from glassformer.functional.cells import as_4d
from glassformer.tracing.mask_codec import encode_mask
from glassformer.tracing.site import Site
from glassformer.tracing.trace import Run, Trace

_FILE = re.compile(r"rank-(\d+)-of-(\d+)\.trace")


def shard_path(folder: Path, rank: int, n_ranks: int) -> Path:
    """The file of one rank; the folder is created, and may hold parts of a trace alone."""
    if folder.is_file():
        raise TraceError(f"A trace in parts is a folder; {folder} is a file. Use another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(f"{folder} could not be created: {error.strerror}.") from None
    found = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    for name in found:
        match = _FILE.fullmatch(name)
        if match is None or int(match[2]) != n_ranks:
            raise TraceError(
                f"The folder of a trace of {n_ranks} ranks must hold their files alone; {folder} "
                f"has {name}. Use another name, or remove it."
            )
    return folder / f"rank-{rank}-of-{n_ranks}.trace"


def find_shards(folder: Path) -> list[Path]:
    """The files of all ranks, in order; an incomplete folder raises a TraceError."""
    found = {}
    counts = set()
    for path in folder.iterdir():
        match = _FILE.fullmatch(path.name)
        if match is not None:
            found[int(match[1])] = path
            counts.add(int(match[2]))
    if len(counts) != 1:
        raise TraceError(
            f"{folder} must be a file, or a folder with the parts of one trace; it has "
            f"{len(found)} of them."
        )
    missing = [rank for rank in range(counts.pop()) if rank not in found]
    if missing:
        raise TraceError(
            f"{folder} lacks the part of rank {missing[0]}: that process has not saved its trace."
        )
    return [found[rank] for rank in sorted(found)]


def join_traces(parts: list[Trace]) -> Trace:
    """The trace that ranks recorded together, in the order of the ranks."""
    runs: list[Run] = []
    for i in range(max(len(part.runs) for part in parts)):
        joined: list[Run] = []
        for part in parts:
            if i < len(part.runs):
                _add_run(joined, part.runs[i])
        runs += joined
    for run in runs:
        for site in run.sites.values():
            if site.heads == tuple(range(site.n_heads)):
                site.heads = None
    return Trace(runs, parts[0].model)


def _add_run(joined: list[Run], run: Run) -> None:
    """Put a rank's run into the first that it is a part of, or behind them."""
    for i, other in enumerate(joined):
        if _is_complement(other, run):
            joined[i] = _join_runs(other, run)
            return
    joined.append(run)


def _is_complement(a: Run, b: Run) -> bool:
    """Whether two runs read one text, and have no head of a layer in common."""
    for name in a.texts.keys() & b.texts.keys():
        if not torch.equal(a.texts[name].tokens, b.texts[name].tokens):
            return False
    return all(
        _is_disjoint(a.sites[name], b.sites[name]) for name in a.sites.keys() & b.sites.keys()
    )


def _is_disjoint(a: Site, b: Site) -> bool:
    return a.heads is not None and b.heads is not None and not set(a.heads) & set(b.heads)


def _join_runs(a: Run, b: Run) -> Run:
    sites = dict(a.sites)
    for name, site in b.sites.items():
        sites[name] = _join_sites(sites[name], site) if name in sites else site
    return Run(
        sites,
        {**b.texts, **a.texts},
        {**b.refusals, **a.refusals},
        {**b.streams, **a.streams},
    )


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
