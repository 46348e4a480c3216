"""A pooled map of attention as a block of shades."""

from jaxtyping import Float
from rich.text import Text
from torch import Tensor

from glassformer.render.marks import shade


def draw_map(share: Float[Tensor, "M N"]) -> Text:
    """One line for each row of the map, its largest cell darkest; blank where nothing goes.

    >>> import torch
    >>> print(draw_map(torch.tensor([[0.5, 0.5], [0.2, 0.8]])))
    ██
    ▒█
    """
    largest = share.amax(-1, keepdim=True)
    relative = (share / largest.masked_fill(largest == 0, 1.0)).tolist()
    lines = ["".join(shade(cell) for cell in row) for row in relative]
    return Text("\n".join(lines), style="cyan", no_wrap=True, overflow="crop")
