"""The keys that each token attends to most, as a list."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from glassformer.render.marks import label
from glassformer.render.numbers import format_weights
from glassformer.tracing import Site

_MOST_LABEL = 14  # cells of a token
_MOST_ROW = 25  # cells of a row label such as "Le → chat"


def draw_top_keys(
    site: Site,
    head: int,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    rows: Sequence[int] | None = None,
    k: int = 3,
    sequence: int = 0,
) -> Table:
    """For each query its k largest weights, with the tokens and positions of their keys.

    5  mat   0.61 the 4   0.22 sat 2   0.09 on 3
    """
    top = site.top(head, min(k, site.shape[3]), sequence=sequence)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("", justify="right", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    for _ in range(top.indices.shape[-1]):
        table.add_column("", no_wrap=True)
    for row in range(site.shape[2]) if rows is None else rows:
        weights, places = top.weights[row].tolist(), top.indices[row].tolist()
        shown = format_weights(weights)
        cells = [
            Text.assemble(
                (f"{weight} ", "cyan"), label(keys[int(place)], _MOST_LABEL), (f" {place}", "dim")
            )
            for weight, place in zip(shown, places, strict=True)
            if int(place) >= 0
        ]
        place = row if site.rows is None else site.rows[row]
        table.add_row(str(place), label(queries[row], _MOST_ROW), *cells)
    return table
