"""Which cells a mask opens: the rule behind a tensor of L × S, where there is one.

causal, unpadded      right=0                    a mask of a text of 100,000 tokens is two numbers
sliding window        left=3, right=0
padded                keys: which keys of each sequence are open to anybody
anything else         cells: the tensor itself

Masks of ours are formulas already (`MaskFormula`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.functional import Causal, Explicit, Mask, Padding, Prefix, Window
from glassformer.tracing.beams import follow_beams


@dataclass(frozen=True, eq=False, kw_only=True)
class MaskRule:
    """The open cells of one call; the last query is aligned with the last key."""

    L: int
    S: int
    left: int | None = None  # how many keys before its position a query sees; None: all
    right: int | None = None  # and after it
    keys: Bool[Tensor, "B S"] | None = None  # open to anybody; None: all of them
    cells: Bool[Tensor, "B H L S"] | None = None  # in place of a rule
    device: torch.device | str = "cpu"

    @property
    def is_causal(self) -> bool:
        """Whether a causal mask without a window opens the same cells."""
        return self.cells is None and self.left is None and (self.right == 0 or self.L == 1)

    @property
    def is_whole(self) -> bool:
        return self.cells is None and self.left is None and self.right is None

    def dense(self) -> Bool[Tensor, "B H L S"]:
        if self.cells is not None:
            return self.cells
        behind = _distance_behind(self.L, self.S, self.device)
        rule = torch.ones_like(behind, dtype=torch.bool)
        if self.left is not None:
            rule &= behind <= self.left
        if self.right is not None:
            rule &= behind >= -self.right
        rule = rule[None, None]  # (1, 1, L, S)
        return rule if self.keys is None else rule & self.keys[:, None, None]

    def drop_keys(self, S: int) -> "MaskRule | None":
        """Without the keys from S on; None where one of them is open."""
        cells = self.dense()
        return None if cells[..., S:].any() else find_rule(cells[..., :S])

    def first_rows(self, stop: int) -> "MaskRule":
        """Only the first rows, without the keys after the last of them."""
        S = self.S - (self.L - stop)
        return find_rule(self.dense()[..., :stop, :S])

    def last_row(self) -> "MaskRule":
        if self.cells is None:
            return replace(self, L=1)
        return replace(self, L=1, cells=self.cells[..., -1:, :])

    def select_sequences(self, rows: Tensor) -> "MaskRule":
        """The same for other sequences of the batch."""
        parts = {n: t for n in ("keys", "cells") if (t := getattr(self, n)) is not None}
        return replace(self, **{n: t[rows] for n, t in parts.items() if len(t) > 1})

    def to(self, device: torch.device | str) -> "MaskRule":
        parts = {n: t for n in ("keys", "cells") if (t := getattr(self, n)) is not None}
        return replace(self, device=device, **{n: t.to(device) for n, t in parts.items()})

    def mask(self, *, B: int, has_sink: bool = False) -> Mask | None:
        """As a mask of ours; a sink is one more key, the first, which every query sees."""
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


@dataclass(frozen=True, eq=False, kw_only=True)
class MaskFormula:
    """A mask of ours; aligned bottom-right, that of the last step holds for all earlier rows."""

    L: int
    S: int
    formula: Mask | None

    def mask(self, *, B: int, has_sink: bool = False) -> Mask | None:
        del B, has_sink
        return self.formula

    def first_rows(self, stop: int) -> "MaskFormula":
        return replace(self, L=stop, S=self.S - (self.L - stop))

    def to(self, device: torch.device | str) -> "MaskFormula":
        return self if self.formula is None else replace(self, formula=self.formula.to(device))


def find_rule(cells: Bool[Tensor, "B H L S"]) -> MaskRule:
    """The rule that opens exactly these cells, or the cells themselves."""
    *_, L, S = cells.shape
    device = cells.device
    if not cells.numel() or cells.all():
        return MaskRule(L=L, S=S, device=device)
    keys = cells.any(2).any(1)  # (B, S)
    behind = _distance_behind(L, S, device)
    somewhere = cells.flatten(0, 1).any(0)  # (L, S)
    if somewhere.any():
        left = int(behind[somewhere].max())
        right = int((-behind[somewhere]).max())
        shown = None if keys.all() else keys
        for limits in ((None, None), (None, 0), (left, 0), (left, right)):
            if any(limit is not None and limit < 0 for limit in limits):
                continue
            rule = MaskRule(L=L, S=S, left=limits[0], right=limits[1], keys=shown, device=device)
            if torch.equal(rule.dense().expand_as(cells), cells):
                return rule
    return MaskRule(L=L, S=S, cells=cells, device=device)


def read_mask(
    mask: Tensor, L: int, S: int, *, is_added: bool
) -> tuple[MaskRule, Float[Tensor, "B H L S"] | None]:
    """What a mask of transformers opens, and what it adds to the scores where that is not 0.

    Booleans open cells; where they are added to scores, as in eager attention, they count as 0 and
    1. Floats open all cells but those near the smallest number of their type.
    """
    mask = mask.detach()
    mask = mask.view(*(1,) * (4 - mask.ndim), *mask.shape)  # broadcast from the right
    shape = (*mask.shape[:2], L, S)
    if mask.dtype == torch.bool and not is_added:
        return find_rule(mask.expand(shape)), None
    numbers = mask.expand(shape) if mask.is_floating_point() else mask.expand(shape).float()
    is_open = numbers > torch.finfo(numbers.dtype).min / 2
    rest = numbers.masked_fill(~is_open, 0.0)
    return find_rule(is_open), rest if rest.any() else None


def join_rules(
    rules: Sequence[MaskRule | MaskFormula],
    order: Sequence[Tensor],
    starts: Sequence[int],
    S: int,
) -> MaskRule | MaskFormula:
    """The steps of one site as one matrix; step i knew the keys from starts[i] on."""
    last = rules[-1]
    L = sum(each.L for each in rules)
    if not _are_read(rules) or isinstance(last, MaskFormula):
        return replace(last, L=L, S=S)
    if len(rules) == 1 and last.S == S:
        return last
    if all(each.is_whole for each in rules) and all(each.S == S for each in rules):
        keys = [_all_keys(each) for each in rules]
        if all(torch.equal(a, keys[-1]) for a in follow_beams(keys, order)):
            return replace(last, L=L)
    elif all(each.is_causal for each in rules) and not any(starts):
        keys = [_all_keys(each) for each in rules]
        if all(torch.equal(a, keys[-1][:, : a.shape[1]]) for a in follow_beams(keys, order)):
            return replace(last, L=L, right=0)
    dense = [
        torch.nn.functional.pad(each.dense(), (start, S - start - each.S))
        for each, start in zip(rules, starts, strict=True)
    ]
    return find_rule(join_rows(dense, order))


def _are_read(
    rules: Sequence[MaskRule | MaskFormula],
) -> TypeGuard[Sequence[MaskRule]]:
    return all(isinstance(rule, MaskRule) for rule in rules)


def join_rows(chunks: Sequence[Tensor], order: Sequence[Tensor]) -> Tensor:
    """The rows of steps below each other; what sequences or heads share is repeated."""
    B, H = (max(chunk.shape[d] for chunk in chunks) for d in (0, 1))
    return torch.cat([c.expand(B, H, -1, -1) for c in follow_beams(chunks, order)], dim=2)


def _all_keys(rule: MaskRule) -> Tensor:
    if rule.keys is not None:
        return rule.keys
    return torch.ones(1, rule.S, dtype=torch.bool, device=rule.device)


def _distance_behind(L: int, S: int, device: torch.device | str) -> Tensor:
    """The distance from each key to each query, (L, S): positive if the key is before it."""
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
