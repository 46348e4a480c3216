"""Which cells a foreign mask opens: the rule behind a tensor of L × S, where there is one.

causal, unpadded      right=0                    a mask of a text of 100,000 tokens is two numbers
sliding window        left=3, right=0
padded                keys: which keys of each sequence are open to anybody
anything else         cells: the tensor itself
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.functional import Causal, Explicit, Mask, Padding, Prefix, Window
from glassformer.tracing.live_trace import in_order


@dataclass(frozen=True, eq=False, kw_only=True)
class Opening:
    """The open cells of one call; the last query stands at the last key."""

    L: int
    S: int
    left: int | None = None  # how many keys before its place a query sees; None all
    right: int | None = None  # and after it
    keys: Bool[Tensor, "B S"] | None = None  # None: all of them
    cells: Bool[Tensor, "B H L S"] | None = None  # in place of a rule
    device: torch.device | str = "cpu"

    @property
    def is_causal(self) -> bool:
        """Whether a causal rule without a window says it too."""
        return self.cells is None and self.left is None and (self.right == 0 or self.L == 1)

    @property
    def is_whole(self) -> bool:
        return self.cells is None and self.left is None and self.right is None

    def dense(self) -> Bool[Tensor, "B H L S"]:
        if self.cells is not None:
            return self.cells
        behind = _behind(self.L, self.S, self.device)
        rule = torch.ones_like(behind, dtype=torch.bool)
        if self.left is not None:
            rule &= behind <= self.left
        if self.right is not None:
            rule &= behind >= -self.right
        rule = rule[None, None]  # (1, 1, L, S)
        return rule if self.keys is None else rule & self.keys[:, None, None]

    def until(self, S: int) -> "Opening | None":
        """Without the keys from S on, None where one of them is open."""
        cells = self.dense()
        return None if cells[..., S:].any() else opening_of(cells[..., :S])

    def rows(self, stop: int) -> "Opening":
        """The first rows alone, and no keys behind the last of them."""
        S = self.S - (self.L - stop)
        return opening_of(self.dense()[..., :stop, :S])

    def last_row(self) -> "Opening":
        if self.cells is None:
            return replace(self, L=1)
        return replace(self, L=1, cells=self.cells[..., -1:, :])

    def of(self, rows: Tensor) -> "Opening":
        """The same for other sequences of the batch."""
        parts = {n: t for n in ("keys", "cells") if (t := getattr(self, n)) is not None}
        return replace(self, **{n: t[rows] for n, t in parts.items() if len(t) > 1})

    def to(self, device: torch.device | str) -> "Opening":
        parts = {n: t for n in ("keys", "cells") if (t := getattr(self, n)) is not None}
        return replace(self, device=device, **{n: t.to(device) for n, t in parts.items()})

    def mask(self, *, B: int, has_sink: bool = False) -> Mask | None:
        """As a mask of ours; a sink is one more key, the first, that everybody sees."""
        if self.cells is not None:
            return Explicit(torch.nn.functional.pad(self.cells, (int(has_sink), 0), value=True))
        parts: list[Mask] = []
        left = self.left
        if self.right == 0:
            parts.append(Causal())
        if left is not None or self.right:
            parts.append(Window(left=left, right=self.right or None))
        if self.keys is not None:
            if has_sink:
                padded = torch.nn.functional.pad(self.keys, (1, 0), value=True)
                parts.append(Explicit(padded[:, None, None]))
            else:
                parts.append(_padding(self.keys.expand(B, -1)))
        if not parts:
            return None
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole | Prefix(1) if has_sink else whole


def opening_of(cells: Bool[Tensor, "B H L S"]) -> Opening:
    """The rule that opens exactly these cells, or the cells themselves."""
    *_, L, S = cells.shape
    device = cells.device
    if not cells.numel() or cells.all():
        return Opening(L=L, S=S, device=device)
    keys = cells.any(2).any(1)  # (B, S)
    behind = _behind(L, S, device)
    somewhere = cells.flatten(0, 1).any(0)  # (L, S)
    if somewhere.any():
        left = int(behind[somewhere].max())
        right = int((-behind[somewhere]).max())
        shown = None if keys.all() else keys
        for limits in ((None, None), (None, 0), (left, 0), (left, right)):
            if any(limit is not None and limit < 0 for limit in limits):
                continue
            rule = Opening(L=L, S=S, left=limits[0], right=limits[1], keys=shown, device=device)
            if torch.equal(rule.dense().expand_as(cells), cells):
                return rule
    return Opening(L=L, S=S, cells=cells, device=device)


def opening_and_bias(
    mask: Tensor, L: int, S: int, *, is_added: bool
) -> tuple[Opening, Float[Tensor, "B H L S"] | None]:
    """What a mask of transformers opens, and what it adds to the scores where that is not 0.

    Booleans open cells; where they are `added` to scores, as eager attention does, they count as
    0 and 1. Floats open all cells but those near the least number there is.
    """
    mask = mask.detach()
    mask = mask.view(*(1,) * (4 - mask.ndim), *mask.shape)  # broadcast from the right
    shape = (*mask.shape[:2], L, S)
    if mask.dtype == torch.bool and not is_added:
        return opening_of(mask.expand(shape)), None
    numbers = mask.expand(shape) if mask.is_floating_point() else mask.expand(shape).float()
    is_open = numbers > torch.finfo(numbers.dtype).min / 2
    rest = numbers.masked_fill(~is_open, 0.0)
    return opening_of(is_open), rest if rest.any() else None


def openings_joined(
    openings: Sequence[Opening], order: Sequence[Tensor], starts: Sequence[int], S: int
) -> Opening:
    """The steps of one site as one matrix; step i knew the keys from starts[i] on."""
    last = openings[-1]
    if len(openings) == 1 and last.S == S:
        return last
    L = sum(each.L for each in openings)
    if all(each.is_whole for each in openings) and all(each.S == S for each in openings):
        keys = [_all_keys(each) for each in openings]
        if all(torch.equal(a, keys[-1]) for a in in_order(keys, order)):
            return replace(last, L=L)
    elif all(each.is_causal for each in openings) and not any(starts):
        keys = [_all_keys(each) for each in openings]
        if all(torch.equal(a, keys[-1][:, : a.shape[1]]) for a in in_order(keys, order)):
            return replace(last, L=L, right=0)
    dense = [
        torch.nn.functional.pad(each.dense(), (start, S - start - each.S))
        for each, start in zip(openings, starts, strict=True)
    ]
    return opening_of(rows_joined(dense, order))


def rows_joined(chunks: Sequence[Tensor], order: Sequence[Tensor]) -> Tensor:
    """Rows of steps below each other; what is shared by sequences or heads in some is repeated."""
    B, H = (max(chunk.shape[d] for chunk in chunks) for d in (0, 1))
    return torch.cat([c.expand(B, H, -1, -1) for c in in_order(chunks, order)], dim=2)


def _all_keys(opening: Opening) -> Tensor:
    if opening.keys is not None:
        return opening.keys
    return torch.ones(1, opening.S, dtype=torch.bool, device=opening.device)


def _behind(L: int, S: int, device: torch.device | str) -> Tensor:
    """How far each key lies behind the place of each query, (L, S)."""
    places = torch.arange(L, device=device)[:, None] + (S - L)
    return places - torch.arange(S, device=device)


def _padding(keys: Bool[Tensor, "B S"]) -> Mask:
    lengths = keys.sum(-1)
    for side in ("right", "left"):
        mask = Padding(lengths, side=side)
        places = torch.arange(keys.shape[1], device=keys.device)
        inside = places < lengths[:, None]
        if torch.equal(keys, inside if side == "right" else inside.flip(-1)):
            return mask
    return Explicit(keys[:, None, None])
