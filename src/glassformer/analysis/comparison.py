"""Two traces side by side: how differently does each head attend?"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.drawings import drawing_module
from glassformer.errors import TraceError
from glassformer.tracing.site import Site
from glassformer.tracing.trace import Trace

_MOST_CELLS = 1 << 24  # of weights held at once


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far apart two traces are, site by site: 0 the same attention, 1 nothing in common."""

    sites: dict[str, Float[Tensor, "H L"]]  # for each head and query: ½ Σ |weight − weight|
    heads: dict[str, tuple[int, ...]]  # the numbers of the heads of each site
    only_first: list[str]  # sites that the other trace lacks, or has in another size
    only_second: list[str]
    traces: tuple[Trace, Trace] | None = None  # what was compared
    sequence: int = 0

    def by_head(self, site: str) -> Float[Tensor, " H"]:
        """The mean over the queries."""
        return self.sites[site].mean(-1)

    def most_changed(self, n: int = 5) -> list[tuple[str, int, int, float]]:
        """The queries whose attention differs most: site, head, query, how far."""
        found = [
            (name, self.heads[name][int(i) // rows.shape[1]], int(i) % rows.shape[1], float(value))
            for name, rows in self.sites.items()
            for value, i in zip(*rows.flatten().topk(min(n, rows.numel())), strict=True)
        ]
        return sorted(found, key=lambda each: -each[3])[:n]

    def figure(
        self,
        path: str | Path,
        *,
        site: str | None = None,
        head: int | None = None,
        position: int = -1,
        top: int = 8,
    ) -> None:
        """Write what changed from the first run to the second, PNG, SVG or PDF.

        The attention of a head (default: the one that changed most) before, after and the
        difference; with the residual streams, the probabilities of the `top` tokens at `position`.
        """
        where: Any = {"site": site, "head": head, "position": position, "top": top}
        drawing_module().change_figure(self, path, **where)

    def page(
        self,
        path: str | Path,
        *,
        site: str | None = None,
        head: int | None = None,
        position: int = -1,
        top: int = 8,
    ) -> None:
        """Write one HTML file with what `figure` draws; it tells the numbers of every cell."""
        where: Any = {"site": site, "head": head, "position": position, "top": top}
        drawing_module().change_page(self, path, **where)


def compare(
    first: Trace,
    second: Trace,
    *,
    sequence: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Two runs of a model, or two models on one text, row by row; no whole matrix is stored.

    Sites are compared where both have one of the same name, heads and lengths.

    >>> import torch
    >>> from glassformer.tracing import Run, record
    >>> q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    >>> traces = [Trace([Run({"layer": record(q * s, k, v)})]) for s in (1, 1)]
    >>> compare(*traces).by_head("layer")
    tensor([0., 0.])
    """
    ours, theirs = first.run.sites, second.run.sites
    shared = [n for n in ours if n in theirs and _is_alike(ours[n], theirs[n])]
    if not shared:
        raise TraceError(
            "To be compared, two traces must share a site of one size; these have "
            f"{_sizes(ours)} and {_sizes(theirs)}. Compare the same text, or models alike."
        )
    found = {}
    for i, name in enumerate(shared):
        found[name] = _distance(ours[name], theirs[name], sequence)
        if progress is not None:
            progress((i + 1) / len(shared))
    return Comparison(
        found,
        {name: ours[name].head_numbers for name in shared},
        [name for name in ours if name not in shared],
        [name for name in theirs if name not in shared],
        (first, second),
        sequence,
    )


def _is_alike(a: Site, b: Site) -> bool:
    return (a.shape[1:], a.head_numbers, a.rows) == (b.shape[1:], b.head_numbers, b.rows)


def _distance(first: Site, second: Site, sequence: int) -> Float[Tensor, "H L"]:
    H, L, S = first.shape[1:]
    step = max(1, _MOST_CELLS // max(1, H * S))
    parts = []
    for start in range(0, L, step):
        rows = range(start, min(start + step, L))
        a, b = (s.weights(rows=rows, sequence=sequence).float().cpu() for s in (first, second))
        parts.append(0.5 * (a - b).abs().sum(-1))
    return torch.cat(parts, dim=-1)


def _sizes(sites: dict[str, Site]) -> str:
    name, site = next(iter(sites.items()), ("no sites", None))
    return name if site is None else f"{name} of {' × '.join(map(str, site.shape[1:]))}"
