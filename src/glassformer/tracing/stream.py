"""The residual stream of a stack: where it starts, and everything that was added to it.

Every part of a block writes to the stream by adding. What was added is kept, as the model computed
it; the stream after each part is the sum so far, in the model's own precision and order, so it has
the model's bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.readout import Readout

Kind = Literal["self", "cross", "mlp", "merged"]


@dataclass(eq=False, frozen=True, kw_only=True)
class Part:
    """What one part of a block adds to the stream."""

    name: str  # decoder.3.self, decoder.3.mlp
    layer: int
    kind: Kind
    value: Float[Tensor, "B L C"]
    site: str | None = None  # the site of attention that it comes from
    is_joined: bool = False  # with the part before it: parallel branches are added as one sum


@dataclass(eq=False, frozen=True, kw_only=True)
class Transform:
    """What happens to the stream itself after a part: a norm (post-norm), or a factor."""

    name: str
    norm: NormForm | None = None
    factor: float | Tensor = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor if self.norm is None else self.norm(x)

    def push(self, part: Tensor, x: Tensor) -> Tensor:
        """What a part of x becomes, when x is what passes."""
        return part * self.factor if self.norm is None else self.norm.push(part, x)

    def offset(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x) if self.norm is None else self.norm.offset(x)


@dataclass(eq=False, kw_only=True)
class Stream:
    """The stream of one stack; `after` is its state behind a part.

    `rows` says which positions were kept, None for all.
    """

    name: str  # of the stack
    text: str
    start: Float[Tensor, "B L C"]  # what the first block reads
    steps: list[Part | Transform] = field(default_factory=list)
    rows: tuple[int, ...] | None = None
    readout: Readout | None = None  # None: not of this stack, or read from a file

    @property
    def parts(self) -> list[Part]:
        return [step for step in self.steps if isinstance(step, Part)]

    @property
    def borders(self) -> list[str]:
        """The names of its states: the start, and one behind each part."""
        return [f"{self.name}.start", *(part.name for part in self.parts)]

    def part(self, name: str) -> Part:
        for part in self.parts:
            if part.name == name:
                return part
        raise TraceError(
            f"A part of the stream must be one of {', '.join(p.name for p in self.parts)}; "
            f"got {name!r}."
        )

    def states(self) -> Iterator[tuple[str, Tensor]]:
        """The state at every border, in order; a part's norm is behind it."""
        x, name = self.start, f"{self.name}.start"
        before, added = x, x  # of parts that are added as one sum
        for step in self.steps:
            if isinstance(step, Part):
                yield name, x
                before, added = (before, added + step.value) if step.is_joined else (x, step.value)
                x, name = before + added, step.name
            else:
                x = step(x)
        yield name, x

    def after(self, border: str) -> Float[Tensor, "B L C"]:
        """The state of the stream at a border."""
        for name, x in self.states():
            if name == border:
                return x
        raise TraceError(f"A border must be one of {', '.join(self.borders)}; got {border!r}.")

    @property
    def end(self) -> Float[Tensor, "B L C"]:
        *_, (_, x) = self.states()
        return x

    def shares(self, *, sequence: int = 0, row: int = -1) -> dict[str, Float[Tensor, " C"]]:
        """What each part is of the end, at one position, in float64: they add up to it.

        Where the stream passes norms, these are frozen at the values that they had.
        """
        x = self.start[sequence, row].double()
        shares = {f"{self.name}.start": x}
        for step in self.steps:
            if isinstance(step, Part):
                shares[step.name] = step.value[sequence, row].double()
                x = x + shares[step.name]
            else:
                shares = {name: step.push(share, x) for name, share in shares.items()}
                offset = step.offset(x)
                if offset.any():
                    shares[step.name] = offset
                x = torch.stack(list(shares.values())).sum(0)
        return shares
