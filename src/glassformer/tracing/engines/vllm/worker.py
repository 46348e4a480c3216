"""Recording inside a vLLM worker, in this process or in another.

    LLM(…, worker_extension_cls="glassformer.tracing.engines.vllm.worker.RecordingWorker")

adds these methods to the workers, wherever they run; an engine inside this process needs no option.
From another process a trace comes back as a file.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.errors import GlassformerError, TraceError
from glassformer.tracing.engines.vllm.recorder import EngineRecorder
from glassformer.tracing.engines.vllm.request_desk import RequestDesk
from glassformer.tracing.engines.vllm.statistics_report import report_run
from glassformer.tracing.engines.vllm.watched_model import WatchedModel
from glassformer.tracing.guard import Guard, describe
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection

EXTENSION = f"{__name__}.RecordingWorker"
DESK = "server"  # the key of the desk that serves a server

_recorders: dict[str, EngineRecorder | RequestDesk] = {}  # of this process, by key


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to record; plain values, which an engine can send to another process."""

    key: str
    process: int  # of the one who asks
    layers: list[int] | None
    heads: list[int] | None
    rows: Any  # None, "last", a list, or {"slice": [start, stop, step]}
    every: int
    outputs: bool
    device: str | None
    budget: int | str | None
    folder: str | None
    requests: str  # "all", or "asking": those whose sampling parameters ask for it

    @property
    def selection(self) -> Selection:
        rows = slice(*self.rows["slice"]) if isinstance(self.rows, dict) else self.rows
        return Selection(layers=self.layers, heads=self.heads, rows=rows, every=self.every)


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How the requests of a server are recorded."""

    secret: str  # the beginning of its keys
    limit: int | None  # bytes of each request
    most: int  # requests at a time


def start_recording(worker: Any, order: dict[str, Any]) -> str | None:
    """Begin to record; a sentence where that is not possible."""
    try:
        asked = Order(**order)
        model = WatchedModel(worker.model_runner)

        def make_store() -> OperandStore:
            return OperandStore(asked.device, asked.budget, asked.folder)

        if asked.requests == "asking":
            recorder = RequestDesk(model, asked.selection, make_store, outputs=asked.outputs)
        else:
            recorder = EngineRecorder(model, asked.selection, make_store(), outputs=asked.outputs)
        recorder.check()
        recorder.attach()
        _recorders[asked.key] = recorder
    except GlassformerError as error:
        return str(error)
    except Exception as error:
        return f"The worker cannot record: {describe(error)}."
    return None


def stop_recording(_worker: Any, key: str, process: int, folder: str) -> dict[str, Any]:
    """End a recording, and hand over what was recorded."""
    recorder = _recorders.pop(key, None)
    if recorder is None:
        return {"faults": {"vLLM": "the worker that was recording has been replaced"}}
    recorder.detach()
    guard = recorder.guard
    answer: dict[str, Any] = {"faults": guard.faults}
    with guard.catch("vLLM"):
        is_here = os.getpid() == process
        trace = recorder.finish(is_read_later=is_here)
        if not is_here:
            path = Path(folder) / f"{key}.trace"
            trace.save(path)
            answer["path"] = str(path)
    return answer


def open_desk(worker: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Record requests of a server that ask; further calls add the secrets of further servers."""
    try:
        asked = ServerSettings(**settings)
        if DESK not in _recorders:
            desk = RequestDesk(
                WatchedModel(worker.model_runner),
                Selection(rows="last"),
                OperandStore,
                limit=asked.limit,
                most=asked.most,
                secrets=set(),
            )
            desk.check()
            desk.attach()
            _recorders[DESK] = desk
        desk = _recorders[DESK]
        assert isinstance(desk, RequestDesk) and desk.secrets is not None
        desk.secrets.add(asked.secret)
    except GlassformerError as error:
        return {"refusal": str(error)}
    except Exception as error:
        return {"refusal": f"The worker cannot record: {describe(error)}."}
    return {"extent": desk.model.extent}


def collect_request(key: str, reason: str | None, folder: str | None, top: int) -> dict[str, Any]:
    """What was recorded under a key: a file in `folder`, or statistics without one."""
    desk, guard = _recorders.get(DESK), Guard("gf.watch")
    answer: dict[str, Any] = {"faults": guard.faults}
    with guard.catch("vLLM"):
        if not isinstance(desk, RequestDesk):
            raise TraceError("The worker that was recording has been replaced.")
        trace = desk.take(key, reason)
        if folder is None:
            answer["runs"] = [report_run(run, top) for run in trace.runs]
        else:
            trace.save(Path(folder))
    return answer


def find_recorder(key: str) -> EngineRecorder | RequestDesk | None:
    """A recorder of this process, by its key."""
    return _recorders.get(key)


class RecordingWorker:
    """Methods for `worker_extension_cls`: what an engine may be asked by `collective_rpc`."""

    def glassformer_start(self, order: dict[str, Any]) -> str | None:
        return start_recording(self, order)

    def glassformer_stop(self, key: str, process: int, folder: str) -> dict[str, Any]:
        return stop_recording(self, key, process, folder)

    def glassformer_open(self, settings: dict[str, Any]) -> dict[str, Any]:
        return open_desk(self, settings)

    def glassformer_collect(
        self, key: str, reason: str | None, folder: str | None, top: int
    ) -> dict[str, Any]:
        return collect_request(key, reason, folder, top)
