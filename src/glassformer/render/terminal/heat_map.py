"""A heat map with tokens as labels, as many as fit into the window."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from rich.cells import cell_len, set_cell_size
from rich.text import Text
from torch import Tensor

from glassformer.render.head_cells import Scale
from glassformer.render.marks import (
    HIDDEN,
    isolate_direction,
    shade,
    split_graphemes,
    visible_token,
)
from glassformer.render.terminal.shades import shade_on_scale

_MOST_LABEL = 14  # cells of a row label
ROW = 11  # cells of each token of a row label such as "Le → chat"
WIDEST_ROW = 2 * ROW + 3
_MOST_HEIGHT = 8  # characters of a column label, written downwards


def draw_heat(
    weights: Float[Tensor, "L S"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    most: int = _MOST_LABEL,
    scale: Scale | None = None,
) -> Text:
    """Each weight as a shade two cells wide, · where a key is masked (0 or NaN).

    Key labels are written downwards. Shades are proportional up to 1 unless a scale is given.

    >>> import torch
    >>> print(draw_heat(torch.tensor([[1.0, 0.0], [0.4, 0.6]]), ["我", "go"], ["我", "go"]))
           g
        我 o
    我  ██ ·
    go  ▒▒ ▓▓
    """
    names = [visible_token(token, most) for token in queries]
    side = max(map(cell_len, names), default=0)
    drawing = Text(no_wrap=True, overflow="crop")
    for line in _write_downwards(keys):
        drawing.append(f"{' ' * (side + 2)}{line}".rstrip() + "\n")
    for name, row in zip(names, weights.tolist(), strict=True):
        drawing.append(isolate_direction(name) + " " * (side - cell_len(name) + 2))
        cells = [f"{HIDDEN} " if _is_hidden(w, scale) else _shade(w, scale) * 2 for w in row]
        drawing.append(" ".join(cells).rstrip(), style="cyan")
        drawing.append("\n")
    drawing.right_crop(1)
    return drawing


def count_fitting_keys(width: int, queries: Sequence[str], *, most: int = _MOST_LABEL) -> int:
    """The number of keys that a heat map can show in a window of this width."""
    side = max((cell_len(visible_token(token, most)) for token in queries), default=0)
    return max(0, (width - side - 1) // 3)


def _is_hidden(weight: float, scale: Scale | None) -> bool:
    return math.isnan(weight) or (scale is None and not weight > 0)


def _shade(weight: float, scale: Scale | None) -> str:
    return shade(weight) if scale is None else shade_on_scale(weight, scale)


def _write_downwards(tokens: Sequence[str]) -> list[str]:
    names = [split_graphemes(visible_token(token, unseen="�")) for token in tokens]
    short = [
        name if len(name) <= _MOST_HEIGHT else [*name[: _MOST_HEIGHT - 1], "⋮"] for name in names
    ]
    height = max(map(len, short), default=0)
    columns = [[""] * (height - len(name)) + name for name in short]
    return [
        " ".join(isolate_direction(set_cell_size(column[i], 2)) for column in columns)
        for i in range(height)
    ]
