"""Requests that ask to be recorded, among those that do not.

The desk listens to every layer. At the first layer of a step it looks which requests have asked;
where none has, all that a call of attention costs is one comparison. Each that has asked gets a
recorder of its own, with its own layers, heads, rows and budget.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from torch import Tensor

from glassformer.tracing.engines.vllm.recorder import EngineRecorder
from glassformer.tracing.engines.vllm.request_options import KEY, RequestOptions
from glassformer.tracing.engines.vllm.watched_model import WatchedModel
from glassformer.tracing.guard import Guard
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection
from glassformer.tracing.trace import Run, Trace

ALL = Selection()


@dataclass(eq=False)
class Entry:
    """A request that has asked: its recorder, or why it has none."""

    key: str
    recorder: EngineRecorder | None = None
    reason: str = ""

    def find_runs(self, name: str) -> list[Run]:
        if self.recorder is None:
            return [Run(refusals={name: self.reason})]
        self.recorder.assemble()
        return self.recorder.trace.recorded or [
            Run(refusals={name: "the request ended before anything was computed"})
        ]


class RequestDesk:
    """Listens for requests that ask, from `attach` to `detach`.

    A server has `secrets`, by which keys of its own begin: other keys are those of clients, and are
    not served. No more than `most` requests are recorded at once.
    """

    def __init__(
        self,
        model: WatchedModel,
        defaults: Selection,
        make_store: Callable[[], OperandStore],
        *,
        outputs: bool = False,
        limit: int | None = None,
        most: int | None = None,
        secrets: set[str] | None = None,
    ) -> None:
        self.model, self.defaults, self.make_store = model, defaults, make_store
        self.outputs, self.limit, self.most, self.secrets = outputs, limit, most, secrets
        self.tokenizer: Any = None
        self.guard = Guard("gf.watch")
        self.trace = Trace(model=dict(model.description), assemble=self.assemble)
        self.trace.part = model.part
        self.entries: dict[str, Entry] = {}  # by request, in the order they came
        self.taken: set[str] = set()  # requests whose entries were taken away
        self.context: Any = None  # vLLM's, of the present step
        self.hearing: list[EngineRecorder] = []  # of the requests in it
        self.forward_context = import_module("vllm.forward_context").get_forward_context

    def check(self) -> None:
        """Raise for options that this model cannot fulfil."""
        self.model.check(self.defaults)

    def attach(self) -> None:
        self.model.attach(self, ALL)

    def detach(self) -> None:
        self.model.detach(self)

    def hear(
        self,
        layer: Any,
        operands: tuple[Tensor, Tensor, Tensor],
        kv_cache: Tensor,
        metadata: Any,
        out: Tensor,
    ) -> None:
        """One layer has computed its attention."""
        context = self.forward_context()
        if context is not self.context:
            self.context, self.hearing = context, []
            with self.guard.catch(self.model.layout.name):
                self.hearing = self._find_recorders()
        for recorder in self.hearing:
            if recorder.selection.has_layer(self.model.place(layer).layer):
                recorder.hear(layer, operands, kv_cache, metadata, out)

    def _find_recorders(self) -> list[EngineRecorder]:
        """The recorders of the requests in this step that have asked."""
        runner, found = self.model.runner, []
        for request in runner.input_batch.req_ids[: runner.input_batch.num_reqs]:
            asked = getattr(runner.requests[request].sampling_params, "extra_args", None)
            if not asked or request in self.taken:
                continue
            if request not in self.entries:
                self._open(request, asked)
            entry = self.entries.get(request)
            if entry is not None and entry.recorder is not None:
                found.append(entry.recorder)
        return found

    def _open(self, request: str, asked: dict[str, Any]) -> None:
        """Give a request that asks a recorder, or a reason why it has none."""
        key = str(asked.get(KEY, ""))
        if self.secrets is not None and not any(map(key.startswith, self.secrets)):
            return
        entry = Entry(key)
        with self.guard.catch(request, partial(setattr, entry, "reason")):
            options = RequestOptions.read(asked, self.defaults, self.limit)
            if options is None:
                return
            self.entries[request] = entry
            if self.most is not None and self._count_recorders() >= self.most:
                entry.reason = f"{self.most} requests are being recorded, the most at a time"
                return
            self.model.check(options.selection)
            entry.recorder = EngineRecorder(
                self.model,
                options.selection,
                self.make_store(),
                tokenizer=self.tokenizer,
                outputs=self.outputs,
                request=request,
                limit=options.limit,
            )
        if entry.reason:
            self.entries[request] = entry

    def _count_recorders(self) -> int:
        return sum(entry.recorder is not None for entry in self.entries.values())

    def take(self, key: str, reason: str | None) -> Trace:
        """Take away what was recorded under a key, a run for each of its requests.

        The reason says why they ended before their time; None if they did not.
        """
        trace = Trace(model=dict(self.model.description))
        trace.part = self.model.part
        self.taken &= self.model.runner.requests.keys()
        for request in [name for name, entry in self.entries.items() if entry.key == key]:
            entry = self.entries.pop(request)
            self.taken.add(request)  # the engine may compute one more step of it
            self.guard.faults.pop(request, None)
            if entry.recorder is not None:
                entry.recorder.close(reason)
                self.hearing = [each for each in self.hearing if each is not entry.recorder]
            trace.recorded += entry.find_runs(self.model.layout.name)
        return trace

    def assemble(self) -> None:
        """A run of the trace for every request that has asked."""
        runs = []
        for entry in self.entries.values():
            runs += entry.find_runs(self.model.layout.name)
            if entry.recorder is not None:
                self.guard.faults |= entry.recorder.guard.faults
        self.trace.recorded[:] = runs

    def finish(self, *, is_read_later: bool = False) -> Trace:
        """The trace, complete, now in any case: those that ask are few. Recorders are let go."""
        del is_read_later
        self.assemble()
        self.trace.assemble = None
        self.entries.clear()
        self.context, self.hearing = None, []
        return self.trace
