"""The requests that were recorded, without the engine: taken apart when their trace is read."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from glassformer.tracing.engines.vllm.layer_groups import LayerGroup
from glassformer.tracing.engines.vllm.request_run import RequestLog, assemble_run
from glassformer.tracing.engines.vllm.watched_model import WatchedLayer
from glassformer.tracing.guard import Guard
from glassformer.tracing.layout import Layout
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.trace import Run


@dataclass(eq=False, kw_only=True)
class ServedRequests:
    """What steps have left of each request, and how a run is made of it."""

    layout: Layout  # without modules
    layers: dict[str, WatchedLayer]  # those selected
    groups: dict[str, LayerGroup]  # by the name of a layer
    store: OperandStore
    guard: Guard
    tokenizer: Any = None
    logs: dict[str, RequestLog] = field(default_factory=dict)  # in the order they came
    fault: str | None = None  # why nothing can be trusted any more

    def assemble(self) -> list[Run]:
        """A run for every request, with all that has been recorded so far."""
        for log in self.logs.values():
            if log.is_stale:
                with self._catch(log):
                    log.run = assemble_run(self, log)
                log.is_stale = False
        runs = [log.run for log in self.logs.values()]
        if self.fault is None:
            return runs
        names = [layer.place.name for layer in self.layers.values()]
        refusals = dict.fromkeys(names, self.fault)
        return [Run(refusals=refusals) for _ in runs] or [Run(refusals=refusals)]

    def close(self) -> None:
        """No step follows: forget vLLM's own state, and note now what cannot be taken apart."""
        for log in self.logs.values():
            with self._catch(log):
                log.drop_rejected()
                log.state = None
                log.check()

    def read_later(self, runs: list[Run]) -> None:
        """Put all runs into a list, the first time; what fails now is warned of now."""
        if self.logs:
            runs[:] = self.assemble()
            self.logs.clear()
            self.guard.warn(is_failing=False, stacklevel=4)

    def _catch(self, log: RequestLog) -> Any:
        return self.guard.catch(self.layout.name, partial(_refuse, log, self.layout.name))


def _refuse(log: RequestLog, name: str, reason: str) -> None:
    log.run = Run(refusals={name: reason})
