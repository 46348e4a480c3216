"""Which tokens may follow, as Python and the C code (native_choice.c) read it."""

import ctypes
from collections.abc import Sequence
from ctypes import c_int64

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.generation.native_structures import Choice


class Rule:
    """Which tokens may be chosen: none of `never`, for a prompt none of its row of `forbidden`.

    A token of `stops` ends a text.
    """

    def __init__(
        self,
        never: Sequence[int],
        forbidden: Bool[Tensor, "prompts V"] | None = None,
        stops: Sequence[int] = (),
        *,
        device: torch.device | None = None,  # of the logits
    ) -> None:
        self.never, self.stops = tuple(never), tuple(stops)
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
        )
        self.kept = lists  # while their addresses are

    def keep(self, prompts: Sequence[int]) -> "Rule":
        """The rule for these prompts alone."""
        forbidden = None if self.forbidden is None else self.forbidden[[*prompts]]
        return Rule(self.never, forbidden, self.stops)
