"""The residual stream of a stack while it is recorded: block by block, pass by pass."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from jaxtyping import Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.beams import follow_beams
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.readout import Readout
from glassformer.tracing.selection import Selection
from glassformer.tracing.stream import BlockOutput, Kind, Part, Stream, Transform, Writing
from glassformer.tracing.stream_graph import (
    Added,
    Normed,
    Scaled,
    StreamStep,
    WritingMatrix,
)
from glassformer.tracing.text_labels import repeat_rows

CROSS = ".cross"


@dataclass(eq=False)
class StreamPass:
    """One pass through the blocks of a stack; steps of generation are one pass each."""

    start: Tensor
    L: int
    rows: Int[Tensor, " R"] | None
    steps: list[Part | Transform] = field(default_factory=list)
    n_blocks: int = 0
    end: Tensor | None = None  # what the last block returned, until the next one has read it
    version: int | None = None  # of its memory: whether it was overwritten in between
    gap: tuple[int, Tensor] | None = None  # the first of layers that are not kept; what it read

    def cut(self, L: int) -> "StreamPass":
        """Its first rows."""
        rows = None if self.rows is None else self.rows[self.rows < L]
        n = L if rows is None else len(rows)
        steps = [
            _map_part(step, lambda x: x[:, :n]) if isinstance(step, Part) else step
            for step in self.steps
        ]
        return replace(self, start=self.start[:, :n], L=L, rows=rows, steps=steps)


@dataclass(eq=False)
class StreamSteps:
    """All passes of a stack in one run."""

    stack: str
    passes: list[StreamPass] = field(default_factory=list)
    fault: str | None = None
    forms: dict[Any, NormForm] = field(default_factory=dict)
    readout: Readout | None = None
    block_output: BlockOutput = "tensor"

    @property
    def n_rows(self) -> int:
        return sum(each.L for each in self.passes)

    def begin(
        self, start: Tensor, rows: Int[Tensor, " R"] | None, store: OperandStore, layer: int = 0
    ) -> None:
        """A pass begins, in a rerun not with the first layer."""
        kept = store.keep(_select(start.detach(), rows))
        self.passes.append(StreamPass(kept, start.shape[1], rows, n_blocks=layer))

    def add_block(
        self,
        start: Tensor,
        steps: Sequence[StreamStep],
        end: Tensor,
        store: OperandStore,
        selection: Selection,
        *,
        is_last: bool,
    ) -> None:
        """What one block did to the stream; of adjacent layers that are not selected, the sum."""
        now = self.passes[-1]
        if now.end is not None and not (start is now.end and _version(start) == now.version):
            raise TraceError(
                f"between blocks {now.n_blocks - 1} and {now.n_blocks} something else changes it"
            )
        layer = now.n_blocks
        if selection.has_layer(layer):
            self._add_steps(steps, store)
        else:
            now.gap = now.gap or (layer, _select(start, now.rows).clone())
            if is_last or selection.has_layer(layer + 1):
                now.steps.append(self._close_gap(_select(end, now.rows), store))
        now.n_blocks += 1
        now.end, now.version = end, _version(end)

    def _close_gap(self, end: Tensor, store: OperandStore) -> Part:
        """All that adjacent layers changed, as one part; its state has the model's bits."""
        now = self.passes[-1]
        assert now.gap is not None
        (first, start), now.gap = now.gap, None
        last = now.n_blocks
        return Part(
            name=f"{self.stack}.{first}" + (f"-{last}" if last > first else ""),
            layer=last,
            kind="layers",
            value=store.keep(end - start),
            state=store.keep(end),
        )

    def _add_steps(self, steps: Sequence[StreamStep], store: OperandStore) -> None:
        now = self.passes[-1]
        for step, named in zip(steps, name_steps(self.stack, now.n_blocks, steps), strict=True):
            if isinstance(step, Added):
                assert named.kind is not None
                part = Part(
                    name=named.name,
                    layer=now.n_blocks,
                    kind=named.kind,
                    value=store.keep(_select(step.value, now.rows)),
                    site=named.site,
                    writing=self._describe_writing(step.matrix, named.name),
                    is_joined=step.is_joined,
                    state=None if step.state is None else store.keep(_select(step.state, now.rows)),
                )
                now.steps.append(part)
            else:
                now.steps.append(self._describe_transform(step, named.name))

    def _describe_writing(self, matrix: WritingMatrix | None, name: str) -> Writing | None:
        if matrix is None:
            return None
        with suppress(TraceError):  # a norm of another kind: what it adds is kept, but not split
            then = tuple(self._describe_transform(step, f"{name}.then") for step in matrix.then)
            return Writing(weight=matrix.weight, bias=matrix.bias, then=then)
        return None

    def _describe_transform(self, step: Normed | Scaled, name: str) -> Transform:
        if isinstance(step, Scaled):
            return Transform(name=name, factor=step.factor)
        if step.module not in self.forms:
            self.forms[step.module] = NormForm.of(step.module, step.before, step.after)
        return Transform(name=name, norm=self.forms[step.module])

    def note_output(self, out: Any) -> None:
        """What a block returned: the stream, alone or with more."""
        if not isinstance(out, Tensor) and self.block_output != "more":
            has_more = any(each is not None for each in out[1:])
            self.block_output = "more" if has_more else len(out)

    def shorten(self, stop: int) -> None:
        """Drop what lies after this many tokens: a cache was cropped."""
        n, kept = 0, []
        for each in self.passes:
            left = min(each.L, max(0, stop - n))
            n += each.L
            if left == each.L:
                kept.append(each)
            elif left:
                kept.append(each.cut(left))
        self.passes = kept

    def build(
        self, text: str, order: Sequence[Tensor], store: OperandStore, *, batch: int | None
    ) -> Stream:
        """The stream of the run: the passes below each other, as the beams took them."""
        order = list(order)[max(0, len(order) - len(self.passes)) :]
        first = self.passes[-1]
        names = [[step.name for step in each.steps] for each in self.passes]
        if any(each != names[-1] for each in names):
            raise TraceError("its passes went through different blocks")

        kept = [part.value for part in first.steps if isinstance(part, Part)]
        is_spread = len({x.device for x in (first.start, *kept)}) > 1

        def join(chunks: list[Tensor]) -> Tensor:
            if is_spread:  # layers on several devices: what they add meets on the CPU
                chunks = [chunk.cpu() for chunk in chunks]
            whole = store.concatenate(follow_beams(chunks, order), dim=1)
            return whole if batch is None else repeat_rows(whole, batch)

        steps: list[Part | Transform] = []
        for i, step in enumerate(first.steps):
            if isinstance(step, Part):
                same = [part for each in self.passes if isinstance(part := each.steps[i], Part)]
                state = [part.state for part in same if part.state is not None]
                value = join([part.value for part in same])
                steps.append(replace(step, value=value, state=join(state) if state else None))
            else:
                steps.append(step)
        return Stream(
            name=self.stack,
            text=text,
            start=join([each.start for each in self.passes]),
            steps=steps,
            rows=self._find_rows(),
            readout=self.readout,
            block_output=self.block_output,
        )

    def _find_rows(self) -> tuple[int, ...] | None:
        found: list[int] = []
        n = 0
        for each in self.passes:
            if each.rows is None:
                return None
            found += (each.rows + n).tolist()
            n += each.L
        return tuple(found)


class NamedStep(NamedTuple):
    """What a step of the stream is called, and what kind of part it is."""

    name: str
    kind: Kind | None = None  # None: a norm or a factor
    site: str | None = None


def name_steps(stack: str, layer: int, steps: Sequence[StreamStep]) -> list[NamedStep]:
    """The names of the steps of one block: its parts by what they depend on."""
    prefix, known = f"{stack}.{layer}", set[str]()
    has_attention = any(isinstance(step, Added) and step.owners for step in steps)
    named: list[NamedStep] = []
    for step in steps:
        found = NamedStep(f"{prefix}.{'scale' if isinstance(step, Scaled) else 'norm'}")
        if isinstance(step, Added) and step.name is not None:
            last = next((each.name for each in reversed(named) if each.kind), f"{stack}.start")
            found = NamedStep(f"{last}.{step.name}", "change")
        elif isinstance(step, Added):
            # Without attention, something else mixes the tokens: a convolution, a recurrence.
            is_first = not any(each.kind for each in named)
            kind: Kind = "mlp" if has_attention or not is_first else "mixer"
            if step.owners:
                kind = "cross" if all(CROSS in owner for owner in step.owners) else "self"
            site = min(step.owners) if len(step.owners) == 1 else None
            if site is not None and not site.startswith(f"{prefix}."):  # shared by the layers
                site = f"{prefix}.{kind}"
            found = NamedStep(f"{prefix}.{kind}", kind, site)
        found = found._replace(name=_number(found.name, known))
        known.add(found.name)
        named.append(found)
    return named


def _select(x: Tensor, rows: Int[Tensor, " R"] | None) -> Tensor:
    return x if rows is None else x.index_select(1, rows)


def _map_part(part: Part, change: Callable[[Tensor], Tensor]) -> Part:
    state = None if part.state is None else change(part.state)
    return replace(part, value=change(part.value), state=state)


def _number(name: str, known: set[str]) -> str:
    """A part that writes more than once: decoder.3.mlp, decoder.3.mlp.2 …"""
    n = 2
    found = name
    while found in known:
        found, n = f"{name}.{n}", n + 1
    return found


def _version(tensor: Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version
