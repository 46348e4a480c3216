"""A head's look at one token, taken apart: what wrote the value it takes, and the score it has.

A score says nothing by itself: a softmax sees only how far it is above the others. So what is split
is the score less the mean score of the keys that the query may see. It is a product of q and k, and
both are affine in the stream: split by what wrote the query, then by what wrote the keys.
"""

from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.analysis.operand_graph import OperandGraph, read_operands
from glassformer.analysis.reading import Reading, ReadingFinder, find_state_before
from glassformer.analysis.token_model import TokenModel
from glassformer.analysis.writers import Writer, Writers
from glassformer.errors import TraceError
from glassformer.functional.arithmetic import RowArithmetic
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.reruns import find_call
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Part, Stream
from glassformer.tracing.trace import Trace


@dataclass(eq=False, frozen=True)
class Split:
    """A number as a sum: what each writer adds to it, and what is there without any of them."""

    value: float
    writers: Writers
    along: Float[Tensor, "R C"]  # the direction in which the stream is measured, at each position
    index: int  # of the position that matters; the others are those it is compared with
    shares: dict[Writer, float]
    constant: float

    @classmethod
    def of(
        cls,
        value: float,
        writers: Writers,
        along: Tensor,
        index: int,
        constant: float,
        what: str,
        *,
        scale: float = 0.0,
    ) -> "Split":
        """Measure every writer; the sum must be the number, or nothing is explained.

        `scale` is the size of the operands, whose rounding a small difference of them has too.
        """
        found = {w: float(s.sum()) for w, s in writers.measure(along).items()}
        size = fsum(abs(share) for share in found.values()) + abs(constant) + scale
        apart = abs(fsum(found.values()) + constant - value)
        if apart > torch.finfo(writers.stream.start.dtype).eps ** 0.5 * max(size, 1e-30):
            raise TraceError(
                f"{what} must be a sum of what the parts below wrote; it is not, by {apart:.2g}: "
                "more than a norm and a matrix lies between."
            )
        return cls(value, writers, along, index, found, constant)


class _Border(NamedTuple):
    """Where a module reads a stream, and by which norm."""

    stream: Stream
    stop: int | None
    state: Float[Tensor, "B L C"]
    norm: NormForm | None


class LookReader:
    """The looks of a recorded run, taken apart on demand; each site is run once."""

    def __init__(self, trace: Trace, *, sequence: int = 0) -> None:
        self.trace, self.sequence = trace, sequence
        model, *_ = find_call(trace)
        subject = TokenModel(model, "gf.why")
        finder = ReadingFinder(subject)
        with subject.evaluating():
            self.readings, self.refusals = finder.read(finder.run())
        self.model = model
        self.modules = {place.name: module for module, place in subject.places.items()}
        self._sites: dict[str, SiteLooks] = {}
        self._writers: dict[tuple[str, int | None, int | None], Writers] = {}

    def open(self, site: str) -> "SiteLooks":
        """The looks of a site; raises where they cannot be taken apart."""
        if site in self.refusals:
            raise TraceError(self.refusals[site])
        if site not in self.readings or site not in self.modules:
            raise TraceError(f"What {site} reads of the stream is not known.")
        if site not in self._sites:
            self._sites[site] = SiteLooks(self, self.modules[site], self.readings[site])
        return self._sites[site]

    def writers(self, border: _Border, row: int | None) -> Writers:
        """What wrote a state at one position, or at all of them."""
        key = border.stream.name, border.stop, row
        if key not in self._writers:
            self._writers[key] = Writers(
                self.trace,
                border.stream,
                None if row is None else [row],
                stop=border.stop,
                sequence=self.sequence,
                or_whole=True,
            )
        return self._writers[key]


class SiteLooks:
    """The graph of one site, from the stream to its operands."""

    def __init__(self, reader: LookReader, module: nn.Module, reading: Reading) -> None:
        self.reader, self.sequence = reader, reader.sequence
        self.site: Site = reader.trace[reading.place.name]
        self.graph = read_operands(reader.trace, module, reading)
        self.none = read_operands(reader.trace, module, reading, factor=0.0)
        self.has_norms = bool(reading.norms)
        self.frozen = ["the sizes that norms inside attention divide by"] if reading.norms else []
        if self.site.softcap is not None:
            self.frozen.append("scores are those before the cap")
        stream = reader.trace.residual(reading.place.stack)
        at, _, state = find_state_before(stream, reading.place.name)
        self.query_side = _Border(stream, _find_first_joined(stream, at), state, reading.query_norm)
        self.key_side = self.query_side
        if reading.place.is_cross:
            context = reader.trace.residual("encoder")
            self.key_side = _Border(context, None, context.end, reading.key_norm)
        if self.site.rows is not None or self.graph.q.shape != self.site.q.shape:
            raise TraceError(
                f"{self.site.name} was recorded in part; its looks need every head and row."
            )
        self.offset = self.site.k.shape[2] - self.graph.k.shape[2]  # a sink is a key without a text

    def split_value(self, head: int, row: int, key: int, seen: Float[Tensor, " E"]) -> Split:
        """What wrote the value at a key: its component along `seen`, times the weight."""
        weight = float(self.site.row(head, row, sequence=self.sequence).weights[key])
        place, number = self._find_text_row(key), self._key_head(head)
        value = weight * float(self.site.v[self.sequence, number, key].double().cpu() @ seen)
        back = torch.zeros_like(self.graph.v[self.sequence, number])
        back[place] = weight * seen.to(back)
        along, constant = self._pull("v", number, back, self.key_side, place)
        writers = self.reader.writers(self.key_side, place)
        return Split.of(value, writers, along, 0, constant, f"The value of {self._name(head)}")

    def split_query(self, head: int, row: int, key: int) -> Split:
        """What wrote the query: the score above the mean, by what each writer adds to q."""
        found = self.site.row(head, row, sequence=self.sequence)
        asked = found.scale * _contrast_keys(found, key)
        value = float(asked @ _of(found.q))
        back = torch.zeros_like(self.graph.q[self.sequence, head])
        back[row] = asked.to(back)
        along, constant = self._pull("q", head, back, self.query_side, row)
        writers = self.reader.writers(self.query_side, row)
        what, scale = f"The query of {self._name(head)}", _size_of_scores(found)
        return Split.of(value, writers, along, 0, constant, what, scale=scale)

    def split_key(
        self, head: int, row: int, key: int, query: Float[Tensor, " D"] | None = None
    ) -> Split:
        """What wrote the keys: the score above the mean of a query, or of a part of one."""
        found = self.site.row(head, row, sequence=self.sequence)
        asked = found.scale * (_of(found.q) if query is None else query)
        value = float(asked @ _contrast_keys(found, key))
        shares = found.allowed.double().cpu() / -int(found.allowed.sum())
        shares[key] += 1.0
        back = shares[self.offset :, None] * asked
        along, constant = self._pull("k", self._key_head(head), back, self.key_side, None)
        writers = self.reader.writers(self.key_side, None)
        place = self._find_text_row(key)
        what, scale = f"The keys of {self._name(head)}", _size_of_scores(found)
        return Split.of(value, writers, along, place, constant, what, scale=scale)

    def read_query(self, head: int, row: int, writer: Writer) -> Float[Tensor, " D"]:
        """What one writer adds to the query of a head."""
        border = self.query_side
        x = self.reader.writers(border, row).push(writer, 0)
        if border.norm is not None:
            x = border.norm.push(x, border.state[self.sequence, row].double().cpu())
        q = self.graph.q[self.sequence, head, row]
        dummy = torch.zeros_like(q, requires_grad=True)  # q is affine: twice pulled is pushed
        (back,) = torch.autograd.grad(
            q, self.graph.reads[0], dummy, create_graph=True, retain_graph=True
        )
        (pushed,) = torch.autograd.grad(back[self.sequence, row], dummy, x.to(back))
        size = self._find_sizes("q", head)[row]
        return size * pushed.double().cpu()

    def _pull(
        self,
        operand: str,
        number: int,
        back: Float[Tensor, "N D"],
        border: _Border,
        row: int | None,
    ) -> tuple[Float[Tensor, "R C"], float]:
        """A direction of an operand as one of the stream, and what is there without the stream."""
        sizes = self._find_sizes(operand, number)[:, None]
        back = back.double().cpu() * sizes
        leaf = self.graph.reads[0 if operand == "q" else -1]
        out: Tensor = getattr(self.graph, operand)[self.sequence, number]
        (along,) = torch.autograd.grad(out, leaf, back.to(out), retain_graph=True)
        along = along[self.sequence].double().cpu()
        constant = float((back * self._read("none", operand, number)).sum())
        state = border.state[self.sequence].double().cpu()
        if row is not None:
            along, state = along[[row]], state[[row]]
        if border.norm is not None:
            constant += float((along * border.norm.offset(state)).sum())
            along = border.norm.pull(along, state)
        return along, constant

    def _find_sizes(self, operand: str, number: int) -> Float[Tensor, " N"]:
        """The recorded operand as a multiple of the linear one: 1, or what a norm divides by."""
        linear = self._read("graph", operand, number)
        if not self.has_norms or operand == "v":
            return torch.ones(len(linear), dtype=torch.float64)
        given = getattr(self.site, operand)[self.sequence, number].double().cpu()
        given = given[len(given) - len(linear) :]
        return (given * linear).sum(-1) / linear.square().sum(-1).clamp(min=1e-300)

    def _read(self, which: str, operand: str, number: int) -> Float[Tensor, "N D"]:
        graph: OperandGraph = getattr(self, which)
        return getattr(graph, operand)[self.sequence, number].detach().double().cpu()

    def _key_head(self, head: int) -> int:
        return head * self.graph.k.shape[1] // self.graph.q.shape[1]

    def _find_text_row(self, key: int) -> int:
        if key < self.offset:
            raise TraceError(f"Key {key} of {self.site.name} is a sink, which no token wrote.")
        return key - self.offset

    def _name(self, head: int) -> str:
        return f"{self.site.name}.{head}"


def _contrast_keys(row: RowArithmetic, key: int) -> Float[Tensor, " D"]:
    """A key less the mean of the keys that the query may see."""
    keys = _of(row.k)
    return keys[key] - keys[row.allowed.cpu()].mean(0)


def _size_of_scores(row: RowArithmetic) -> float:
    return abs(row.scale) * float(_of(row.q).norm() * _of(row.k).norm(dim=-1).amax())


def _of(operand: Tensor | None) -> Tensor:
    assert operand is not None
    return operand.double().cpu()


def _find_first_joined(stream: Stream, at: int) -> int:
    """Parallel parts read the same state: that before the first of them."""
    step = stream.steps[at]
    while isinstance(step, Part) and step.is_joined:
        at -= 1
        step = stream.steps[at]
    return at
