"""The number of keys each query may see: allowed by the mask, and not hidden by a bias of −∞.

Uniform blocks are counted from the mask's bounds; only mixed blocks are evaluated.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.functional.biases import Bias
from glassformer.functional.cells import Blocks, Extent, Tile
from glassformer.functional.masks import Mask

_BLOCK = 256  # rows and columns, at least
_MOST_BLOCKS = 1024  # along a side
# Additive masks also use the lowest finite number; next to other scores its weight is 0.
_HIDING = -1e30


def visible_keys(
    extent: Extent, device: torch.device, *, mask: Mask | None = None, bias: Bias | None = None
) -> Int[Tensor, "B H L"]:
    """The exact number of keys that each query may see, without L × S cells in memory.

    >>> from glassformer.functional import Causal, Window
    >>> visible_keys(Extent(1, 1, 4, 4), torch.device("cpu"), mask=Causal()).tolist()
    [[[1, 2, 3, 4]]]
    """
    B, H, L, S = extent
    counts = torch.zeros(B, H, L, dtype=torch.long, device=device)
    if not counts.numel() or not S:
        return counts
    mask = None if mask is None else mask.fit_to(extent, device)
    bias = bias.fit_to(extent, device) if bias is not None and _may_hide(bias) else None
    if mask is None and bias is None:
        return counts + S
    rows = max(_BLOCK, -(-L // _MOST_BLOCKS))
    cols = max(_BLOCK * _BLOCK // min(rows, L), -(-S // _MOST_BLOCKS))  # wider where rows are few
    blocks = Blocks(L, S, rows, cols, device)
    possible = certain = torch.ones(1, 1, -(-L // rows), -(-S // cols), dtype=torch.bool)
    if mask is not None:
        possible, certain = (each.cpu() for each in blocks.spread(mask.bounds(blocks)))
    if bias is not None:
        certain = torch.zeros_like(certain)
    open_, full = possible.any(0).any(0), certain.all(0).all(0)
    widths = torch.tensor([min(cols, S - start) for start in range(0, S, cols)])
    whole = (full * widths).sum(-1).repeat_interleave(rows)[:L]
    counts += whole.to(device)
    for i, j in (open_ & ~full).nonzero().tolist():
        where = slice(i * rows, min((i + 1) * rows, L))
        tile = Tile(extent, where, slice(j * cols, min((j + 1) * cols, S)), device)
        counts[:, :, where] += _spread(visible_cells(tile, mask, bias), tile).sum(-1)
    return counts


def visible_cells(tile: Tile, mask: Mask | None, bias: Bias | None) -> Bool[Tensor, "..."]:
    """Which cells of a rectangle are visible, broadcastable to (B, H, R, C).

    Mask and bias must be checked already (`fit_to`).

    >>> visible_cells(Tile.whole(Extent(1, 1, 1, 2), torch.device("cpu")), None, None).tolist()
    True
    """
    seen = torch.ones((), dtype=torch.bool, device=tile.device)
    if mask is not None and tile.mixed:
        seen = mask.tile(tile)
    if bias is not None:
        seen = seen & ~(bias.tile(tile) < _HIDING)
    return seen


def _spread(cells: Tensor, tile: Tile) -> Tensor:
    """Cells with rows and columns expanded, so that they can be counted."""
    rows, cols = (len(which) for which in tile.indices())
    cells = cells.view((1,) * (4 - cells.ndim) + cells.shape)
    return cells.expand(*cells.shape[:2], rows, cols)


def _may_hide(bias: Bias) -> bool:
    lowest = (float(tensor.amin()) for tensor in bias.tensors() if tensor.numel())
    return any(low < _HIDING / 2 for low in lowest)  # two halves may be added
