"""A mask given as a tensor, and the conversion from other conventions."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.errors import ConfigError, DtypeError, ShapeError
from glassformer.functional.cells import (
    Blocks,
    Bounds,
    Cells,
    Extent,
    Tile,
    as_4d,
    block_ends,
    cut_tile,
    pick_cells,
)
from glassformer.functional.drawing import read_cells
from glassformer.functional.masks.mask import Mask


@dataclass(frozen=True, eq=False, repr=False)
class Explicit(Mask):
    """A boolean tensor, (L, S) or broadcastable to (B, H, L, S).

    >>> Explicit.from_drawing("■ · / ■ ■").tensor.tolist()
    [[True, False], [True, True]]
    """

    tensor: Bool[Tensor, "..."]

    def __post_init__(self) -> None:
        if self.tensor.dtype != torch.bool:
            raise DtypeError(
                f"mask must be bool (True = may attend); got {self.tensor.dtype} of shape "
                f"{tuple(self.tensor.shape)}. To add it to the scores, pass it as bias=; "
                "if 1 marks what to keep, pass mask.bool()."
            )
        if self.tensor.ndim not in (2, 4):
            raise ShapeError(
                f"mask must have rank 2, (L, S), or rank 4, (B, H, L, S); got shape "
                f"{tuple(self.tensor.shape)}. Use mask[:, None] for one mask per sequence, "
                "mask[None] for one per head, mask[:, None, None] for the keys of each sequence."
            )

    @classmethod
    def from_drawing(cls, drawing: str) -> "Explicit":
        """A mask from a drawing, rows in lines or split by slashes: ■ x 1 may, · . 0 may not."""
        return cls(read_cells(drawing))

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        return pick_cells(as_4d(self.tensor), cells)

    def tile(self, tile: Tile) -> Bool[Tensor, "..."]:
        return cut_tile(as_4d(self.tensor), tile)

    def bounds(self, blocks: Blocks) -> Bounds:
        low, high = block_ends(as_4d(self.tensor).byte(), blocks.cols)
        low, _ = block_ends(low.transpose(-1, -2), blocks.rows)
        _, high = block_ends(high.transpose(-1, -2), blocks.rows)
        return Bounds(high.transpose(-1, -2).bool(), low.transpose(-1, -2).bool())

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        wrong = any(n not in (1, m) for n, m in zip(as_4d(self.tensor).shape, extent, strict=True))
        if wrong:
            hint = ""
            if tuple(self.tensor.shape) == (extent.B, extent.S):
                hint = " One row per sequence? Use mask[:, None, None, :] or Padding(lengths)."
            raise ShapeError(
                f"mask must broadcast to (B, H, L, S) = {tuple(extent)}; got "
                f"{tuple(self.tensor.shape)}.{hint}"
            )
        return super().fit_to(extent, device)

    def data_extent(self) -> Extent:
        return Extent(*as_4d(self.tensor).shape)


def as_mask(mask: Any) -> Mask:
    """A mask unchanged, a boolean tensor as `Explicit`; anything else is an error."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return Explicit(mask)
    raise DtypeError(
        f"mask must be a mask value such as gf.Causal() or a bool tensor; got "
        f"{type(mask).__name__}. Build one with gf.Explicit(torch.tensor(...))."
    )


def from_torch_mha(
    attn_mask: Bool[Tensor, "L S"] | Bool[Tensor, "BH L S"] | None = None,
    key_padding_mask: Bool[Tensor, "B S"] | None = None,
    *,
    n_heads: int | None = None,
) -> Mask:
    """Convert the masks of `torch.nn.MultiheadAttention`, where True means *hidden*.

    >>> hidden = torch.tensor([[False, True], [False, False]])
    >>> print(from_torch_mha(hidden).draw())
    ■ ·
    ■ ■
    """
    given = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
    for name, tensor in given.items():
        if tensor is not None and tensor.dtype != torch.bool:
            raise DtypeError(
                f"{name} must be bool (True = hidden, as torch.nn.MultiheadAttention has it); got "
                f"{tensor.dtype}. A float mask is added to the scores: pass it as bias=."
            )
    masks: list[Mask] = []
    if attn_mask is not None:
        open_cells = ~attn_mask
        if open_cells.ndim == 3:
            if n_heads is None or open_cells.shape[0] % n_heads:
                raise ConfigError(
                    f"An attn_mask of rank 3 is (batch · n_heads, L, S); got shape "
                    f"{tuple(attn_mask.shape)} and n_heads={n_heads}. Give the module's n_heads."
                )
            open_cells = open_cells.unflatten(0, (-1, n_heads))
        masks.append(Explicit(open_cells))
    if key_padding_mask is not None:
        if key_padding_mask.ndim != 2:
            raise ShapeError(
                f"key_padding_mask must be (B, S); got shape {tuple(key_padding_mask.shape)}."
            )
        masks.append(Explicit(~key_padding_mask[:, None, None, :]))
    if not masks:
        raise ConfigError("from_torch_mha needs attn_mask, key_padding_mask or both; got neither.")
    return masks[0] if len(masks) == 1 else masks[0] & masks[1]
