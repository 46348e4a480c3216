"""The recorder: one bookkeeping of runs, passes and steps for every kind of model.

A source (sources/) listens to a model and says what it hears: a pass begins, attention was
computed. The recorder finds the run that a pass continues, keeps what was selected, follows the
caches' beams, and refuses what could not be followed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from glassformer.errors import GlassformerError, TraceError
from glassformer.tracing.guard import Guard
from glassformer.tracing.interventions.editor import Editor
from glassformer.tracing.layout import Layout, Place
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.patches import FAILED, Tap, listen
from glassformer.tracing.readout import Readout
from glassformer.tracing.recorded_run import RecordedRun, stream_name
from glassformer.tracing.selection import Selection
from glassformer.tracing.site_steps import Step
from glassformer.tracing.stream_graph import StreamStep
from glassformer.tracing.trace import Run, Trace

MOST_OPEN = 4  # runs that may still be continued: guidance alternates between two caches

MakeStep = Callable[[], tuple[Step, Tensor | None]]  # the step, and how far it is from the model's


@runtime_checkable
class Source(Protocol):
    """What a recorder asks of those who know a kind of model."""

    tree: ModuleTree
    reorders: tuple[str, str]  # the method by which its caches move beams, and the argument's name

    def check(self, recorder: "Recorder") -> None:
        """Raise for options that this model cannot fulfil, before anything runs."""
        ...

    def attach(self, recorder: "Recorder", undo: list[Callable[[], None]]) -> None:
        """Set the recorder's layout and listen to the model; `undo` ends the listening."""
        ...

    def build_readout(self, stack: str) -> Readout | None:
        """What the model makes of the end of a stack's residual stream, where that is known."""
        ...


class Recorder:
    """What is known while a model is recorded; sources call it, a trace shows it."""

    def __init__(
        self,
        name: str,
        source: Source,
        selection: Selection,
        store: OperandStore,
        *,
        tokenizer: Any = None,
        outputs: bool = False,
    ) -> None:
        self.name, self.source, self.guard = name, source, Guard("gf.watch")
        self.selection, self.store = selection, store
        self.tokenizer, self.outputs = tokenizer, outputs
        self.residual = False  # whether the residual stream is kept as well
        self.editor: Editor | None = None  # what is changed while the model runs
        self.trace = Trace(assemble=self.finish)
        self.layout: Layout | None = None
        self.open: list[RecordedRun] = []  # those that may be continued; the last is the latest
        self.undo: list[Callable[[], None]] = []
        self.run: RecordedRun | None = None  # of the present pass, as soon as it is known
        self.reader: Any = None  # the encoder, if the present pass only reads
        self.start = 0  # how many tokens precede the present pass
        self.is_counted = False  # whether the present pass is a step of its run
        self.streaming: set[str] = set()  # stacks whose stream has begun in the present pass
        self.n_passes = 0
        self.is_silent = False  # whether nothing is kept: only what is changed matters

    def tap(self, **callbacks: Any) -> Tap:
        """Someone who listens; a fault in a callback concerns the whole run."""
        return Tap(self.name, self.guard, self.refuse_all, **callbacks)

    def begin_pass(self, reader: Any = None) -> None:
        """A pass of the model begins; which run it belongs to is not known yet."""
        self.run, self.reader, self.start, self.is_counted = None, reader, 0, False
        self.streaming.clear()
        self.n_passes += 1

    def read(self) -> RecordedRun:
        """The pass of `reader` belongs to a run that has yet to be written."""
        last = self.open[-1] if self.open else None
        if last is None or not last.is_awaiting_writer or self.reader in last.read:
            last = self.begin_run()
        last.read.add(self.reader)
        self.run = last
        return last

    def write(self, cache: Any, start: int, *, has_read: bool) -> RecordedRun:
        """The pass continues the run of its cache, completes one that was read, or begins one."""
        assert self.layout is not None
        self.start = start
        last = self.open[-1] if self.open else None
        is_awaiting = last is not None and last.is_awaiting_writer
        run = self._find_continued(cache, start)
        if run is not None:
            self.run = run
            self.open.remove(run)
            self.open.append(run)
            if start < run.stop:
                run.shorten(start)
        elif last is not None and is_awaiting and (has_read or not self.layout.has_source):
            run = last
        else:
            run = self.begin_run(keeping_source=has_read and last is not None)
        self.run = run
        run.stop = start
        self.follow_cache(run, cache)
        return run

    def _find_continued(self, cache: Any, start: int) -> RecordedRun | None:
        """The run that this cache belongs to, if it holds what was seen."""
        if cache is None or not start:
            return None
        found = [run for run in self.open if run.cache is cache and start <= run.stop]
        return found[0] if found else None

    def begin_run(self, *, keeping_source: bool = False) -> RecordedRun:
        if self.open:
            run = self.open[-1].next_run(keeping_source=keeping_source)
        else:
            assert self.layout is not None
            run = RecordedRun(self.layout, self.guard, self.store, self.tokenizer)
        for old in list(self.open):
            if old.cache is None or len(self.open) >= MOST_OPEN:
                self.open.remove(old)
                old.stop_following()
                old.finish()
        self.trace.recorded.append(run.run)
        self.open.append(run)
        self.run = run
        return run

    def follow_cache(self, run: RecordedRun, cache: Any) -> None:
        """Listen to beams that change places in the cache of a run."""
        if cache is run.cache:
            return
        run.stop_following()
        run.cache = cache
        method, argument = self.source.reorders
        if not hasattr(cache, method):
            return

        def reorder(_cache: Any, args: tuple, options: dict[str, Any], out: Any) -> None:
            if out is not FAILED:
                run.reorder(args[0] if args else options[argument])

        tap = Tap(self.name, self.guard, run.spoil, after=reorder)
        stop = listen(cache, method, tap)
        self.undo.append(stop)
        run.follow(stop)

    def count_step(self, n_sequences: int) -> None:
        """The pass is one more step of its run, with this many sequences."""
        if self.run is not None and not self.is_counted:
            self.run.order.append(torch.arange(n_sequences))
            self.is_counted = True

    def record(self, place: Place, make_step: MakeStep, *, n_sequences: int | None = None) -> None:
        """Keep one call of attention; `make_step` is only called where it is selected."""
        run, layout = self.run, self.layout
        if run is None or layout is None or run.fault is not None or self.is_silent:
            return
        is_written = place.stack == layout.writer
        if is_written and n_sequences is not None:
            self.count_step(n_sequences)
        if not self.selection.has_layer(place.layer):
            return
        steps = run.open_site(place)
        if place.name in run.refusals:
            return
        with self.guard.catch(place.name, partial(run.refuse, place.name)), torch.no_grad():
            try:
                step, difference = make_step()
                step = step.detach()
                heads = self.selection.head_numbers(step.q.shape[1], place.name, step.shard)
            except GlassformerError as error:  # the model does what cannot be shown
                run.refuse(place.name, str(error).rstrip("."))
                return
            if is_written:
                self.count_step(len(step.q))
            if heads == ():  # those that were selected are on other ranks
                return
            step = step if self.outputs else step.without_output()
            rows = self.selection.row_positions(
                steps.n_rows, step.L, step=len(steps.steps), device=step.q.device
            )
            run.add(place, step.select(heads, rows), difference)

    def is_changed(self, place: Place) -> bool:
        """Whether attention is changed here."""
        return self.editor is not None and self.editor.changes_attention(place.name)

    def change_attention(
        self, place: Place, out: Tensor, start: int, make_step: Callable[[], Step]
    ) -> Tensor:
        """Change the output of one call of attention, and record the call as it was changed."""
        assert self.editor is not None
        heads, step, reason = self.editor.edit_attention(place, out, start, make_step)
        with self.guard.catch(place.name, partial(self.refuse, place)):
            if reason is not None:
                self.refuse(place, reason)
            else:
                self.record(
                    place,
                    lambda: (replace(step or make_step(), out=heads, lse=None), None),
                    n_sequences=len(out),
                )
        return heads

    def record_stream(
        self,
        stack: str,
        start: Tensor,
        steps: Sequence[StreamStep],
        end: Tensor,
        *,
        is_first: bool,
        is_last: bool,
        layer: int = 0,
    ) -> None:
        """Keep what one block did to the stream of its stack; the first says which layer it is."""
        run = self.run
        if run is None or run.fault is not None:
            return
        name = stream_name(stack)
        stream = run.open_stream(stack, is_new=stack not in self.streaming)
        if name in run.refusals:
            return
        with self.guard.catch(name, partial(run.refuse, name)), torch.no_grad():
            try:
                if stack not in self.streaming:
                    if not is_first:
                        raise TraceError("its first block did not run")
                    self.streaming.add(stack)
                    rows = self.selection.row_positions(
                        stream.n_rows, start.shape[1], step=len(stream.passes), device=start.device
                    )
                    stream.begin(start, rows, self.store, layer)
                    if len(stream.passes) == 1 and (found := self.source.build_readout(stack)):
                        self.record_readout(stack, found)
                stream.add_block(start, steps, end, self.store, self.selection, is_last=is_last)
            except GlassformerError as error:
                run.refuse(name, str(error).rstrip("."))

    def note_output(self, stack: str, out: Any) -> None:
        """Keep what a block returns beside the stream: a rerun must return the same."""
        if self.run is not None and stack in self.run.streams:
            self.run.streams[stack].note_output(out)

    def record_readout(self, stack: str, readout: Readout) -> None:
        """Keep what the model makes of the end of a stream."""
        if self.run is not None and stack in self.run.streams:
            readout.tokenizer = self.tokenizer
            self.run.streams[stack].readout = readout
            self.run.is_stale = True

    def refuse_stream(self, stack: str, reason: str) -> None:
        """A block whose stream could not be followed."""
        if self.run is not None:
            self.run.refuse(stream_name(stack), reason)

    def refuse(self, place: Place, reason: str) -> None:
        """A call of attention that cannot be shown."""
        if self.run is not None and self.selection.has_layer(place.layer):
            self.run.places.setdefault(place.name, place)
            self.run.refuse(place.name, reason)

    def refuse_all(self, reason: str) -> None:
        """A fault that no site can be named for: nothing of the present run is trusted."""
        if self.layout is None:
            self.trace.recorded.append(Run(refusals={self.name: reason}))
            return
        run = self.begin_run() if self.run is None else self.run
        if self.reader is not None:  # what is written after it is spoilt as well
            run.read.add(self.reader)
        run.spoil(reason)

    def finish(self) -> None:
        """Assemble what has been recorded so far."""
        for run in self.open:
            run.finish()

    def close(self) -> None:
        """Break every circle that leads to the trace, once nobody listens any more.

        What was recorded would otherwise stay in memory, when the trace is gone, until Python's
        collector looks for circles: it counts objects, of which a few may be gigabytes.
        """
        for run in self.open:
            run.stop_following()
        self.open.clear()
        self.undo.clear()
        del self.source
