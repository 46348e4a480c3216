"""The residual stream of a stack while it is recorded: block by block, pass by pass."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.beams import follow_beams
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Kind, Part, Stream, Transform, Writing
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

    def cut(self, L: int) -> "StreamPass":
        """Its first rows."""
        rows = None if self.rows is None else self.rows[self.rows < L]
        n = L if rows is None else len(rows)
        steps = [
            replace(step, value=step.value[:, :n]) if isinstance(step, Part) else step
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

    @property
    def n_rows(self) -> int:
        return sum(each.L for each in self.passes)

    def begin(self, start: Tensor, rows: Int[Tensor, " R"] | None, store: OperandStore) -> None:
        kept = store.keep(_select(start.detach(), rows))
        self.passes.append(StreamPass(kept, start.shape[1], rows))

    def add_block(
        self, start: Tensor, steps: Sequence[StreamStep], end: Tensor, store: OperandStore
    ) -> None:
        """What one block did to the stream."""
        now = self.passes[-1]
        if now.end is not None and not (start is now.end and _version(start) == now.version):
            raise TraceError(
                f"between blocks {now.n_blocks - 1} and {now.n_blocks} something else changes it"
            )
        has_attention = any(isinstance(step, Added) and step.owners for step in steps)
        n_known = len(now.steps)
        for step in steps:
            # Without attention, something else mixes the tokens: a convolution, a recurrence.
            is_mixer = not has_attention and not any(
                isinstance(each, Part) for each in now.steps[n_known:]
            )
            now.steps.append(self._name(step, now, store, "mixer" if is_mixer else "mlp"))
        now.n_blocks += 1
        now.end, now.version = end, _version(end)

    def _name(
        self, step: StreamStep, now: StreamPass, store: OperandStore, without_attention: Kind
    ) -> Part | Transform:
        prefix, layer = f"{self.stack}.{now.n_blocks}", now.n_blocks
        known = {each.name for each in now.steps}
        if isinstance(step, Added):
            kind = without_attention
            if step.owners:
                kind = "cross" if all(CROSS in owner for owner in step.owners) else "self"
            site = min(step.owners) if len(step.owners) == 1 else None
            if site is not None and not site.startswith(f"{prefix}."):  # shared by the layers
                site = f"{prefix}.{kind}"
            name = _number(f"{prefix}.{kind}", known)
            value = store.keep(_select(step.value, now.rows))
            return Part(
                name=name,
                layer=layer,
                kind=kind,
                value=value,
                site=site,
                writing=self._describe_writing(step.matrix, name),
                is_joined=step.is_joined,
            )
        transform = self._describe_transform(step, prefix)
        return replace(transform, name=_number(transform.name, known))

    def _describe_writing(self, matrix: WritingMatrix | None, name: str) -> Writing | None:
        if matrix is None:
            return None
        with suppress(TraceError):  # a norm of another kind: what it adds is kept, but not split
            then = tuple(self._describe_transform(step, name) for step in matrix.then)
            return Writing(weight=matrix.weight, bias=matrix.bias, then=then)
        return None

    def _describe_transform(self, step: Normed | Scaled, prefix: str) -> Transform:
        if isinstance(step, Scaled):
            return Transform(name=f"{prefix}.scale", factor=step.factor)
        if step.module not in self.forms:
            self.forms[step.module] = NormForm.of(step.module, step.before, step.after)
        return Transform(name=f"{prefix}.norm", norm=self.forms[step.module])

    def shorten(self, stop: int) -> None:
        """Drop what lies behind this many tokens: a cache was cropped."""
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

        def join(chunks: list[Tensor]) -> Tensor:
            whole = store.concatenate(follow_beams(chunks, order), dim=1)
            return whole if batch is None else repeat_rows(whole, batch)

        steps: list[Part | Transform] = []
        for i, step in enumerate(first.steps):
            if isinstance(step, Part):
                all_of_it = [each.steps[i] for each in self.passes]
                value = join([each.value for each in all_of_it if isinstance(each, Part)])
                steps.append(replace(step, value=value))
            else:
                steps.append(step)
        return Stream(
            name=self.stack,
            text=text,
            start=join([each.start for each in self.passes]),
            steps=steps,
            rows=self._find_rows(),
            readout=self.readout,
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


def _select(x: Tensor, rows: Int[Tensor, " R"] | None) -> Tensor:
    return x if rows is None else x.index_select(1, rows)


def _number(name: str, known: set[str]) -> str:
    """A part that writes more than once: decoder.3.mlp, decoder.3.mlp.2 …"""
    n = 2
    found = name
    while found in known:
        found, n = f"{name}.{n}", n + 1
    return found


def _version(tensor: Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version
