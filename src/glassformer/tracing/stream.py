"""The residual stream of a stack: where it starts, and everything that was added to it.

Every part of a block writes to the stream by adding. What was added is kept, as the model computed
it; the stream after each part is the sum so far, in the model's own precision and order, so it has
the model's bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.best_tokens import BestTokens
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.readout import Readout

# "change": by an intervention; "layers": several layers, of which nothing else was kept.
Kind = Literal["self", "cross", "mlp", "mixer", "change", "layers"]

# What a block returns: the stream, a tuple of this length with nothing else in it, or more.
BlockOutput = Literal["tensor", "more"] | int


@dataclass(eq=False, frozen=True, kw_only=True)
class Transform:
    """What happens to a vector: a norm, or a factor."""

    name: str
    norm: NormForm | None = None
    factor: float | Tensor = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x * self._factor(x) if self.norm is None else self.norm(x)

    def push(self, part: Tensor, x: Tensor) -> Tensor:
        """What a part of x becomes, when x is what passes."""
        return part * self._factor(part) if self.norm is None else self.norm.push(part, x)

    def pull(self, direction: Tensor, x: Tensor) -> Tensor:
        """The direction in which a part of x is seen, before it passes."""
        if self.norm is None:
            return direction * self._factor(direction)
        return self.norm.pull(direction, x)

    def _factor(self, x: Tensor) -> float | Tensor:
        return self.factor.to(x.device) if isinstance(self.factor, Tensor) else self.factor

    def offset(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x) if self.norm is None else self.norm.offset(x)


@dataclass(eq=False, frozen=True, kw_only=True)
class Writing:
    """The matrix by which a part writes, and what happens to its result before it is added."""

    weight: Float[Tensor, "C X"]
    bias: Float[Tensor, " C"] | None = None
    then: tuple[Transform, ...] = ()

    def split(self, inputs: Float[Tensor, "N L X"], n: int) -> tuple[Tensor, Tensor]:
        """What each of n equal slices of the input writes, (n, N, L, C), and the rest, in float64.

        Norms are frozen at what passes them, so the slices and the rest add up.
        """
        x = inputs.double()
        weight = self.weight.to(x)
        slices = torch.stack(
            [a @ b.mT for a, b in zip(x.chunk(n, -1), weight.chunk(n, -1), strict=True)]
        )
        rest = torch.zeros_like(slices[0])
        if self.bias is not None:
            rest = rest + self.bias.to(x)
        for step in self.then:
            whole = slices.sum(0) + rest
            slices = torch.stack([step.push(each, whole) for each in slices])
            rest = step.push(rest, whole) + step.offset(whole)
        return slices, rest


@dataclass(eq=False, frozen=True, kw_only=True)
class Part:
    """What one part of a block adds to the stream."""

    name: str  # decoder.3.self, decoder.3.mlp
    layer: int
    kind: Kind
    value: Float[Tensor, "B L C"]
    site: str | None = None  # the site of attention that it comes from
    writing: Writing | None = None  # None: no single matrix, or read from a file
    is_joined: bool = False  # with the part before it: parallel branches are added as one sum
    state: Float[Tensor, "B L C"] | None = None  # that it leaves, where this is not the sum so far


@dataclass(eq=False, kw_only=True)
class Stream:
    """The stream of one stack; `after` is its state after a part.

    `rows` says which positions were kept, None for all. Layers that were not kept are one part.
    """

    name: str  # of the stack
    text: str
    start: Float[Tensor, "B L C"]  # what the first block reads
    steps: list[Part | Transform] = field(default_factory=list)
    rows: tuple[int, ...] | None = None
    readout: Readout | None = None  # None: not of this stack, or read from a file
    block_output: BlockOutput = "tensor"
    best: BestTokens | None = None  # read from a file, or once asked for
    _last: tuple[str, Any] = field(default=("", None), repr=False)

    @property
    def parts(self) -> list[Part]:
        return [step for step in self.steps if isinstance(step, Part)]

    @property
    def borders(self) -> list[str]:
        """The names of its states: the start, and one after each part."""
        return [f"{self.name}.start", *(part.name for part in self.parts)]

    def states_of_model(self) -> list[str]:
        """Its borders without those inside of parallel parts, which the model adds at once."""
        parts = self.parts
        after = [*parts[1:], None]
        joined = {
            p.name for p, n in zip(parts, after, strict=True) if n is not None and n.is_joined
        }
        return [name for name in self.borders if name not in joined]

    def part(self, name: str) -> Part:
        for part in self.parts:
            if part.name == name:
                return part
        raise TraceError(
            f"A part of the stream must be one of {', '.join(p.name for p in self.parts)}; "
            f"got {name!r}."
        )

    def states(self) -> Iterator[tuple[str, Tensor]]:
        """The state at every border, in order; a part's norm is after it."""
        x, name = self.start, f"{self.name}.start"
        before, added = x, x  # of parts that are added as one sum
        for step in self.steps:
            if isinstance(step, Part):
                yield name, x
                before, added = (before, added + step.value) if step.is_joined else (x, step.value)
                x, name = before + added if step.state is None else step.state, step.name
            else:
                x = step(x)
        yield name, x

    def after(self, border: str) -> Float[Tensor, "B L C"]:
        """The state of the stream at a border; that of the last one asked for is kept."""
        if self._last[0] == border:
            return self._last[1]
        for name, x in self.states():
            if name == border:
                self._last = name, x
                return x
        raise TraceError(f"A border must be one of {', '.join(self.borders)}; got {border!r}.")

    @property
    def end(self) -> Float[Tensor, "B L C"]:
        *_, (_, x) = self.states()
        return x

    def require_readout(self) -> Readout:
        """Its readout, or a sentence that says why there is none."""
        if self.readout is None:
            raise TraceError(
                f"The stream of {self.name!r} has no readout: the model gave no scores for tokens "
                "in this run, or the trace was read from a file."
            )
        if not self.readout.operations:
            raise TraceError(f"The scores of this model cannot be read out: {self.readout.reason}.")
        return self.readout

    def best_tokens(self) -> BestTokens | None:
        """What the model puts first at each position; None where it scores no tokens."""
        readout = self.readout
        if self.best is None and readout is not None and readout.scores_tokens:
            self.best = BestTokens.of(readout, self.end)
        return self.best

    def shares(self, *, sequence: int = 0, row: int = -1) -> dict[str, Float[Tensor, " C"]]:
        """What each part is of the end, at one position, in float64: they add up to it.

        Where the stream passes norms, these are frozen at the values that they had.
        """
        shares = {}
        for name, value, passed in self.ways(sequence, row):
            shares[name] = value
            for step, x in passed:
                shares[name] = step.push(shares[name], x)
        return shares

    def directions(
        self, direction: Float[Tensor, " C"], *, sequence: int = 0, row: int = -1
    ) -> dict[str, tuple[Float[Tensor, " C"], Float[Tensor, " C"]]]:
        """For each part its value at one position, and the direction in which it is to be measured.

        Their products add up to the end's component along `direction`.
        """
        return {
            name: (value, pull_through(direction.double(), passed))
            for name, value, passed in self.ways(sequence, row)
        }

    def ways(
        self, sequence: int, rows: int | slice | list[int], stop: int | None = None
    ) -> Iterator[tuple[str, Tensor, list[tuple[Transform, Tensor]]]]:
        """Each term at these positions, in float64, and what it passes on its way to the end.

        With `stop`, only the first steps: the way to where a block's part reads.
        """
        x = self.start[sequence, rows].double()
        terms: list[tuple[str, Tensor, int]] = [(f"{self.name}.start", x, 0)]
        passed: list[tuple[Transform, Tensor]] = []
        for step in self.steps[:stop]:
            if isinstance(step, Part):
                value = step.value[sequence, rows].double()
                terms.append((step.name, value, len(passed)))
                x = x + value
                continue
            passed.append((step, x))
            offset = step.offset(x)
            if offset.any():
                terms.append((step.name, offset, len(passed)))
            x = step.push(x, x) + offset
        for name, value, n in terms:
            yield name, value, passed[n:]


def pull_through(
    direction: Float[Tensor, "*L C"], passed: list[tuple[Transform, Tensor]]
) -> Float[Tensor, "*L C"]:
    """The direction in which a term is seen before it passes norms and factors."""
    for step, x in reversed(passed):
        direction = step.pull(direction, x)
    return direction
