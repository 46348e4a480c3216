"""A small matrix with tokens as labels: scores, or weights with their shades."""

from collections.abc import Sequence

from jaxtyping import Bool, Float
from rich.console import RenderableType
from rich.text import Text
from torch import Tensor

from glassformer.errors import ShapeError
from glassformer.render.marks import HIDDEN, shade
from glassformer.render.numbers import format_weights
from glassformer.render.terminal.number_table import draw_cells, draw_numbers


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
    return draw_numbers(scores.tolist(), queries, keys, title=title)


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
    return draw_cells(cells, queries, keys, title)


def _check_labels(matrix: Tensor, queries: Sequence[str], keys: Sequence[str]) -> None:
    if tuple(matrix.shape) != (len(queries), len(keys)):
        raise ShapeError(
            f"A matrix needs one token for each row and column; got {tuple(matrix.shape)} with "
            f"{len(queries)} tokens for rows and {len(keys)} for columns."
        )
