"""A pooled map of attention as a block of shades."""

from jaxtyping import Float
from rich.text import Text
from torch import Tensor

from glassformer.render.head_cells import Scale
from glassformer.render.marks import shade
from glassformer.render.terminal.shades import shade_on_scale


def draw_map(share: Float[Tensor, "M N"], scale: Scale | None = None) -> Text:
    """One line for each row of the map; blank for no attention (0) and for masked blocks (NaN).

    The largest cell of each row is darkest, unless a scale for all rows is given.

    >>> import torch
    >>> print(draw_map(torch.tensor([[0.5, 0.5], [0.2, 0.8]])))
    ██
    ▒█
    """
    if scale is not None:
        lines = ["".join(shade_on_scale(cell, scale) for cell in row) for row in share.tolist()]
    else:
        largest = share.amax(-1, keepdim=True)
        relative = (share / largest.masked_fill(largest == 0, 1.0)).tolist()
        lines = ["".join(shade(cell) for cell in row) for row in relative]
    return Text("\n".join(lines), style="cyan", no_wrap=True, overflow="crop")
