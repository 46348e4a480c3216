"""A small matrix with tokens as labels: scores, or weights with their shades."""

from collections.abc import Iterable, Sequence

from jaxtyping import Bool, Float
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from torch import Tensor

from glassformer.errors import ShapeError
from glassformer.render.marks import HIDDEN, label, shade
from glassformer.render.numbers import format_numbers, format_weights


def draw_scores(
    scores: Float[Tensor, "L S"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str = "",
) -> RenderableType:
    """Scores as numbers, −∞ where a key is masked.

        我  爱  你
    我  10  −∞  −∞
    爱   9  12  −∞
    """
    _check_labels(scores, queries, keys)
    shown = iter(format_numbers(scores.flatten().tolist()))
    cells = ([_score(next(shown)) for _ in keys] for _ in queries)
    return _table(cells, queries, keys, title)


def draw_weights(
    weights: Float[Tensor, "L S"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    allowed: Bool[Tensor, "L S"] | None = None,
    title: str = "",
) -> RenderableType:
    """Weights as shades and numbers, · where a key is masked.

             我       爱
    我  ██ 1.00        ·
    爱  ░░ 0.05  ██ 0.95
    """
    _check_labels(weights, queries, keys)
    seen = (weights > 0 if allowed is None else allowed).flatten().tolist()
    values = weights.flatten().tolist()
    shown = zip(values, format_weights(values), seen, strict=True)
    marks = iter(
        Text.assemble((shade(w) * 2, "cyan"), f" {text}") if open_ else Text(HIDDEN, style="dim")
        for w, text, open_ in shown
    )
    cells = ([next(marks) for _ in keys] for _ in queries)
    return _table(cells, queries, keys, title)


def _table(
    cells: Iterable[list[Text]], queries: Sequence[str], keys: Sequence[str], title: str
) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("")
    for key in keys:
        table.add_column(label(key), justify="right", no_wrap=True)
    for query, row in zip(queries, cells, strict=True):
        table.add_row(label(query), *row)
    # A title set by rich would wrap at the width of the table.
    return Group(Text(title, style="bold"), table) if title else table


def _score(shown: str) -> Text:
    return Text(shown, style="dim" if shown == "−∞" else "")


def _check_labels(matrix: Tensor, queries: Sequence[str], keys: Sequence[str]) -> None:
    if tuple(matrix.shape) != (len(queries), len(keys)):
        raise ShapeError(
            f"A matrix needs one token for each row and column; got {tuple(matrix.shape)} with "
            f"{len(queries)} tokens for rows and {len(keys)} for columns."
        )
