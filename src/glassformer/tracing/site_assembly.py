"""A site from what was kept of it, and the texts of its rows."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.functional.cells import Extent
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.selection import Choice, of_heads, of_rows, taken
from glassformer.tracing.site import Site
from glassformer.tracing.trace import Run, Words


def site_of(
    *,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor | None,
    mask: Any,
    bias: Any,
    heads: tuple[int, ...] | None,
    rows: Int[Tensor, " R"] | None,
    n_heads: int,
    n_rows: int,
    lse: Tensor | None,
    **rest: Any,
) -> Site:
    """The site of chosen heads and rows; mask and bias are those of all of them.

    Operands that were kept in different places meet on the CPU.
    """
    where = {operand.device for operand in (q, k, v, out) if operand is not None}
    on = q.device if len(where) == 1 else torch.device("cpu")
    extent = Extent(len(q), n_heads, n_rows, k.shape[2])
    if rows is not None:
        of_all = (part if part is None else part.to(rows.device) for part in (mask, bias))
        mask, bias = (of_rows(part, rows, extent) for part in of_all)
    mask, bias = (of_heads(part, heads) for part in (mask, bias))
    return Site(
        q=q.to(on),
        k=k.to(on),
        v=v.to(on),
        out=None if out is None else out.to(on),
        mask=None if mask is None else mask.to(on),
        bias=None if bias is None else bias.to(on),
        heads=heads,
        rows=None if rows is None else tuple(rows.tolist()),
        n_rows=None if rows is None else n_rows,
        **rest,
        _kept={} if lse is None else {"lse": lse.to(on)},
    )


def part_of(site: Site, choice: Choice, keeper: Keeper) -> Site:
    """What is to be kept of a site of one call."""
    H, K = site.q.shape[1], site.k.shape[1]
    heads = choice.head_numbers(H, site.name)
    rows = choice.row_places(0, site.q.shape[2], step=0, device=site.q.device)
    read = None if heads is None else tuple(h * K // H for h in heads)
    return site_of(
        name=site.name,
        q=keeper.keep(taken(site.q, heads, rows)),
        k=keeper.keep(taken(site.k, read)),
        v=keeper.keep(taken(site.v, read)),
        out=None if site.out is None else keeper.keep(taken(site.out, heads, rows)),
        heads=heads,
        rows=rows,
        n_heads=H,
        n_rows=site.q.shape[2],
        lse=None,
        queries=site.queries,
        keys=site.keys,
        **site.options,
    )


def name_rows(run: Run) -> None:
    """Sites without some of their rows have a text of those that are left."""
    for site in run.sites.values():
        words = run.texts.get(site.queries)
        if site.rows is None or words is None:
            continue
        name, rows = f"{site.queries}, chosen rows", list(site.rows)
        labels = [[row[i] for i in rows] for row in words.labels]
        if not labels:
            labels = [[str(i) for i in row] for row in words.tokens[:, rows].tolist()]
        run.texts[name] = Words(words.tokens[:, rows], labels)
        site.queries = name


def without_empty(run: Run) -> None:
    """A site of which no row was kept is none; that is told where one asks for it."""
    for name, site in list(run.sites.items()):
        if site.rows == ():
            del run.sites[name]
            run.refusals[name] = "none of the chosen rows has passed"
