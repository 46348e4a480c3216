"""Long texts in seconds: a sample of the queries, each computed exactly."""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.functional.cells import Extent
from glassformer.render.tokens import token_names
from glassformer.tracing import Site, Trace, TracedText
from glassformer.tracing.selection import select_rows

_MOST_CELLS = 1 << 29  # weights per picture: a few seconds on a CPU
_LEAST_QUERIES = 16
_SOME = ", some rows of "  # in the names of sampled texts


def sample_queries(trace: Trace) -> Trace:
    """The last run, with as many queries per site as can be computed in seconds."""
    sites = trace.run.sites
    cells = sum(torch.Size(site.shape).numel() for site in sites.values())
    if cells <= _MOST_CELLS:
        return trace
    share = _MOST_CELLS / cells
    return thin_queries(trace, lambda site: int(site.shape[2] * share))


def thin_queries(trace: Trace, n: Callable[[Site], int]) -> Trace:
    """The last run, with about n(site) evenly spaced queries per site."""
    run = replace(trace.run, sites={}, texts=dict(trace.run.texts))
    for name, site in trace.run.sites.items():
        some = run.sites[name] = select_evenly(site, n(site))
        if some is not site:
            some.queries = f"{site.queries}{_SOME}{name}"
            run.texts[some.queries] = _name_rows(trace, site, some.shape[2])
    return Trace([run], trace.model)


def _name_rows(trace: Trace, site: Site, n: int) -> TracedText:
    rows = even_positions(site.shape[2], n)
    names = [token_names(trace, site, sequence)[0] for sequence in range(site.shape[0])]
    labels = [[row[i] for i in rows.tolist()] for row in names]
    return TracedText(rows.expand(len(names), -1), labels)


def even_positions(length: int, n: int) -> Int[Tensor, " n"]:
    """n evenly spaced positions of 0 … length − 1, including both ends."""
    return torch.linspace(0, length - 1, n, dtype=torch.float64).round().long()


def select_evenly(site: Site, n: int) -> Site:
    """The site with about n evenly spaced queries, including the first and the last."""
    B, H, L, S = site.shape
    n = max(n, _LEAST_QUERIES)
    if n >= L:
        return site
    rows = even_positions(L, n)
    which = rows.to(site.q.device)
    mask, bias = (select_rows(part, which, Extent(B, H, L, S)) for part in (site.mask, site.bias))
    of_all = range(L) if site.rows is None else site.rows
    return replace(
        site,
        q=site.q[:, :, which],
        out=None if site.out is None else site.out[:, :, which],
        mask=mask,
        bias=bias,
        rows=tuple(of_all[row] for row in rows.tolist()),
        n_rows=L if site.rows is None else site.n_rows,
        _kept={},
    )


def count_queries(site: Site) -> tuple[int, int]:
    """The number of queries present, and the number they were sampled from."""
    some = site.shape[2]
    is_sampled = site.queries.endswith(f"{_SOME}{site.name}")
    return some, site.n_rows if is_sampled and site.n_rows is not None else some
