"""What analyses need beside the public interventions: places that are read, or given a tensor.

A probe changes nothing. What it holds is the very tensor that the model goes on with, so a result
can be differentiated by it.
"""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from glassformer.tracing.interventions.intervention import Intervention
from glassformer.tracing.interventions.numbers import Numbers
from glassformer.tracing.interventions.values import Target


@dataclass(frozen=True, repr=False, eq=False)
class Probe(Intervention):
    """Hold what a place computes.

    With `head`, the output of a site's heads, (B, H, L, E); otherwise what a part adds, the sum of
    stream and part right after it, or the state at a border, (B, L, C).

    >>> print(Probe("decoder.3.mlp", "sum"))
    probe(decoder.3.mlp, what=sum)
    """

    place: str
    what: Literal["added", "sum", "state"] = "added"
    head: Numbers | None = None
    sequences: Numbers | None = None
    held: list[Tensor] = field(default_factory=list, repr=False)

    def __eq__(self, other: object) -> bool:  # each holds what is its own
        return self is other

    __hash__ = object.__hash__

    @property
    def value(self) -> Tensor:
        """What was computed last."""
        return self.held[-1]

    def __str__(self) -> str:
        shown = "" if self.what == "added" else f", what={self.what}"
        return f"probe({self.place}{shown})"


@dataclass(frozen=True, repr=False, eq=False)
class Put(Intervention):
    """Put a tensor in the place of what a part adds, or of the state at a border.

    >>> import torch
    >>> print(Put("decoder.3.mlp", torch.zeros(1, 5, 8)))
    put(decoder.3.mlp, values=tensor(1 × 5 × 8))
    """

    place: str
    values: Tensor
    what: Target = "added"
    positions: Numbers | None = None
    sequences: Numbers | None = None

    def __eq__(self, other: object) -> bool:  # tensors need not be compared
        return self is other

    __hash__ = object.__hash__
