"""A site from the operands that were kept, and the texts of its rows."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.functional import Bias, Mask
from glassformer.functional.biases import as_bias
from glassformer.functional.cells import Extent
from glassformer.functional.masks import as_mask
from glassformer.tracing.selection import select_heads, select_rows
from glassformer.tracing.site import Site
from glassformer.tracing.trace import Run, TracedText

CHOSEN_ROWS = ", chosen rows"  # after the name of a text of which some rows are kept


def record(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    out: Tensor | None = None,
    name: str = "attention",
) -> Site:
    """Build a site from your own operands: any attention can be inspected.

    >>> q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    >>> record(q, k, v).entropy(head=1).shape
    torch.Size([5])
    """
    return Site(
        name=name,
        q=q.detach(),
        k=k.detach(),
        v=v.detach(),
        mask=None if mask is None else as_mask(mask),
        bias=None if bias is None else as_bias(bias),
        scale=scale,
        softcap=softcap,
        out=None if out is None else out.detach(),
    )


def build_site(
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
    """The site of the selected heads and rows; mask and bias are those of all of them.

    Operands that were kept in different places meet on the CPU.
    """
    where = {operand.device for operand in (q, k, v, out) if operand is not None}
    on = q.device if len(where) == 1 else torch.device("cpu")
    extent = Extent(len(q), n_heads, n_rows, k.shape[2])
    if rows is not None:
        of_all = (part if part is None else part.to(rows.device) for part in (mask, bias))
        mask, bias = (select_rows(part, rows, extent) for part in of_all)
    mask, bias = (select_heads(part, heads) for part in (mask, bias))
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


def name_selected_rows(run: Run) -> None:
    """Give sites of selected rows a text of those rows."""
    named: dict[str, tuple[int, ...]] = {}  # the rows of each text; mostly the same at all sites
    for site in run.sites.values():
        words = run.texts.get(site.queries)
        if site.rows is None or words is None:
            continue
        name = f"{site.queries}{CHOSEN_ROWS}"
        if named.get(name) != site.rows:
            named[name] = site.rows
            run.texts[name] = _select_text(words, list(site.rows))
        site.queries = name


def _select_text(words: TracedText, rows: list[int]) -> TracedText:
    tokens = words.tokens[:, rows]
    labels = [[row[i] for i in rows] for row in words.labels]
    return TracedText(tokens, labels or [[str(i) for i in row] for row in tokens.tolist()])


def drop_empty_sites(run: Run) -> None:
    """Refuse sites of which no row was kept."""
    for name, site in list(run.sites.items()):
        if site.rows == ():
            del run.sites[name]
            run.refusals[name] = "none of the chosen rows has passed"
