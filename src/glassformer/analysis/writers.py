"""What wrote a state of the residual stream: the start, feed-forwards, and attention by head.

A state is a sum. Measured along one direction at each position, every term has an exact share, with
the norms that it passes frozen at the values that they had.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional import attention
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Part, Stream, Writing, pull_through
from glassformer.tracing.trace import Trace


class Writer(NamedTuple):
    """A term of the stream: a part or one of its heads, the start, what a bias or a norm adds."""

    part: str  # decoder.3.self, decoder.3.self.bias, decoder.start
    head: int | None = None

    @property
    def name(self) -> str:
        return self.part if self.head is None else f"{self.part}.{self.head}"


class Writers:
    """The terms of a stream at some positions, as far as one of its borders.

    `stop` counts the steps before that border; None is the end. With `or_whole`, attention that
    cannot be split into heads is one term; otherwise that is an error.
    """

    def __init__(
        self,
        trace: Trace,
        stream: Stream,
        rows: Sequence[int] | None = None,
        *,
        stop: int | None = None,
        sequence: int = 0,
        or_whole: bool = False,
    ) -> None:
        self.trace, self.stream, self.sequence, self.or_whole = trace, stream, sequence, or_whole
        self.rows = None if rows is None else list(rows)
        at = slice(None) if self.rows is None else self.rows
        self.parts = {part.name: part for part in stream.parts}
        self.ways = [
            (name, value.cpu(), [(step, x.cpu()) for step, x in passed])
            for name, value, passed in stream.ways(sequence, at, stop)
        ]
        self._heads: dict[str, Float[Tensor, "R X"] | None] = {}
        self._weights: dict[tuple[str, int], Float[Tensor, "H S"]] = {}

    def measure(
        self, along: Float[Tensor, "R C"], *, by_head: bool = True
    ) -> dict[Writer, Float[Tensor, " R"]]:
        """The share of each term in the component along a direction, at each position."""
        shares: dict[Writer, Tensor] = {}
        for name, value, passed in self.ways:
            seen = pull_through(along.double(), passed)
            part = self.parts.get(name)
            heads = self.heads(part) if by_head and part is not None else None
            if part is None or heads is None:
                shares[Writer(name)] = (value * seen).sum(-1)
                continue
            assert part.writing is not None and part.site is not None
            of_inputs, constant, _ = pull_to_inputs(part.writing, heads, seen)
            if constant.any():
                shares[Writer(f"{name}.bias")] = constant
            numbers = self.trace[part.site].head_numbers
            by_number = (heads * of_inputs).unflatten(-1, (len(numbers), -1)).sum(-1)
            shares |= {Writer(name, h): by_number[:, i] for i, h in enumerate(numbers)}
        return shares

    def push(self, writer: Writer, index: int) -> Float[Tensor, " C"]:
        """What a term is of the state at one of the positions: these add up to it."""
        name = writer.part.removesuffix(".bias")
        for each, value, passed in self.ways:
            if each != name:
                continue
            x = value[index]
            part = self.parts.get(name)
            heads = None if part is None else self.heads(part)
            if part is not None and heads is not None:
                assert part.writing is not None and part.site is not None
                numbers = self.trace[part.site].head_numbers
                slices, rest = part.writing.split(heads[index][None, None], len(numbers))
                x = rest[0, 0] if writer.head is None else slices[numbers.index(writer.head), 0, 0]
            for step, at in passed:
                x = step.push(x, at[index])
            return x
        raise TraceError(f"Nothing named {writer.name} writes to the stream of {self.stream.name}.")

    def along(self, name: str, along: Float[Tensor, "R C"]) -> Float[Tensor, "R C"]:
        """The direction in which a part is seen, where it is added."""
        passed = next(passed for each, _, passed in self.ways if each == name)
        return pull_through(along.double(), passed)

    def see_head(
        self, part: Part, head: int, index: int, along: Float[Tensor, "R C"]
    ) -> Float[Tensor, " E"]:
        """The direction in which the output of one head is seen, at one of the positions."""
        heads = self.heads(part)
        assert part.writing is not None and part.site is not None and heads is not None
        at = [index]
        seen, *_ = pull_to_inputs(part.writing, heads[at], self.along(part.name, along)[at])
        numbers = self.trace[part.site].head_numbers
        return seen[0].unflatten(0, (len(numbers), -1))[numbers.index(head)]

    def heads(self, part: Part) -> Float[Tensor, "R X"] | None:
        """The outputs of a part's heads side by side; None where there are none to tell apart."""
        if part.kind not in ("self", "cross"):
            return None
        if part.name not in self._heads:
            try:
                self._heads[part.name] = self._read_heads(part)
            except TraceError:
                if not self.or_whole:
                    raise
                self._heads[part.name] = None
        return self._heads[part.name]

    def weights(self, site: Site, index: int) -> Float[Tensor, "H S"]:
        """The weights of every head at one of the positions, in float64."""
        row = index if self.rows is None else self.rows[index]
        if (site.name, row) not in self._weights:
            weights = site.weights(rows=[row], sequence=self.sequence)[:, 0]
            self._weights[site.name, row] = weights.double().cpu()
        return self._weights[site.name, row]

    def _read_heads(self, part: Part) -> Float[Tensor, "R X"]:
        site, writing = require_heads(self.trace, part)
        heads = _mix_values(site, self.sequence, self.rows).transpose(0, 1).flatten(1)
        if heads.shape[1] != writing.weight.shape[1]:
            raise TraceError(
                f"The heads of {part.name} must be what its matrix reads, "
                f"{writing.weight.shape[1]} numbers; they are {heads.shape[1]}."
            )
        value = next(value for name, value, _ in self.ways if name == part.name)
        written = pull_to_inputs(writing, heads, torch.zeros_like(value))[2]
        apart = compare(written, value)
        if apart > torch.finfo(part.value.dtype).eps ** 0.5:
            raise TraceError(
                f"{part.name} cannot be split into heads: their sum misses it by "
                f"{100 * apart:.2g} %; between the heads and the stream lies more than a matrix."
            )
        return heads


def require_heads(trace: Trace, part: Part) -> tuple[Site, Writing]:
    """The site and the matrix of a part, if every head of it is known."""
    if part.writing is None:
        raise TraceError(
            f"{part.name} cannot be split into heads: no single matrix writes it to the stream."
        )
    if part.site is None:
        raise TraceError(f"{part.name} cannot be split: it is of more than one site.")
    site = trace[part.site]
    if site.heads is not None:
        raise TraceError(f"Of {part.site} only some heads were recorded; record it without heads=.")
    return site, part.writing


def read_values(site: Site, sequence: int) -> Float[Tensor, "H S E"]:
    """The values that each head mixes, in float64."""
    v = site.v[sequence].double().cpu()
    return v.repeat_interleave(site.n_heads // len(v), dim=0)


def _mix_values(site: Site, sequence: int, rows: list[int] | None) -> Float[Tensor, "H R E"]:
    """What each head takes, at some positions by its weights, at all of them by a kernel."""
    if rows is not None:
        weights = site.weights(rows=rows, sequence=sequence).double().cpu()
        return weights @ read_values(site, sequence)
    return attention(site.q, site.k, site.v, **site.options)[sequence].double().cpu()


def pull_to_inputs(
    writing: Writing, inputs: Float[Tensor, "R X"], along: Float[Tensor, "R C"]
) -> tuple[Float[Tensor, "R X"], Float[Tensor, " R"], Float[Tensor, "R C"]]:
    """The direction in which the inputs of a matrix are seen, what biases add by themselves, and
    what is written in all.
    """
    matrix = writing.weight.double().cpu()
    bias = torch.zeros(len(matrix)).double()
    if writing.bias is not None:
        bias = writing.bias.double().cpu()
    x, passed = inputs @ matrix.mT + bias, []
    for step in writing.then:
        passed.append((step, x))
        x = step.push(x, x) + step.offset(x)
    seen, constant = along.cpu(), torch.zeros(len(inputs), dtype=torch.float64)
    for step, before in reversed(passed):
        constant = constant + (seen * step.offset(before)).sum(-1)
        seen = step.pull(seen, before)
    return seen @ matrix, constant + (seen * bias).sum(-1), x


def compare(written: Float[Tensor, "R C"], value: Float[Tensor, "R C"]) -> float:
    """How far what inputs write is from what was added, as a share of it: the proof of a split."""
    apart = (written - value).norm(dim=-1) / value.norm(dim=-1).clamp(min=1e-30)
    return float(apart.amax())
