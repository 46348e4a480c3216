"""Which tokens may follow, as Python and the C code (native_choice.c) read it."""

import ctypes
from collections.abc import Sequence
from ctypes import c_int64

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.generation.native_structures import Choice


class Rule:
    """Which tokens may be chosen: none of `never`, for a prompt none of its row of `forbidden`.

    A token of `stops` ends a text. With `renormalizes`, probabilities are among the tokens that are
    not forbidden; otherwise forbidden ones keep their share.
    """

    def __init__(
        self,
        never: Sequence[int],
        forbidden: Bool[Tensor, "prompts V"] | None = None,
        stops: Sequence[int] = (),
        *,
        renormalizes: bool = False,
        device: torch.device | None = None,  # of the logits
    ) -> None:
        self.never, self.stops, self.renormalizes = tuple(never), tuple(stops), renormalizes
        self._selected: tuple[Tensor, Rule] | None = None
        self.forbidden = None
        if forbidden is not None:
            self.forbidden = forbidden.to(device, torch.bool).contiguous()
        lists = [(c_int64 * len(each))(*each) for each in (self.never, self.stops)]
        self.choice = Choice(
            never=ctypes.addressof(lists[0]),
            stops=ctypes.addressof(lists[1]),
            n_never=len(never),
            n_stops=len(stops),
            forbidden=None if self.forbidden is None else self.forbidden.data_ptr(),
            renormalizes=renormalizes,
        )
        self.kept = lists  # while their addresses are

    def keep(self, prompts: Sequence[int]) -> "Rule":
        """The rule for these prompts alone."""
        forbidden = None if self.forbidden is None else self.forbidden[[*prompts]]
        return Rule(self.never, forbidden, self.stops, renormalizes=self.renormalizes)

    def select(self, tokens: Int[Tensor, " n"]) -> "Rule":
        """The rule where logits are those of these tokens alone, which it counts from 0.

        What ends a text keeps its name.
        """
        if self._selected is None or self._selected[0] is not tokens:
            forbidden = None if self.forbidden is None else self.forbidden[:, tokens]
            places = torch.isin(tokens, torch.tensor(self.never, dtype=tokens.dtype)).nonzero()
            never = places.flatten().tolist()
            rule = Rule(never, forbidden, self.stops, renormalizes=self.renormalizes)
            self._selected = tokens, rule
        return self._selected[1]
