"""`gf.watch(llm)`: an engine of vLLM, recorded while it serves."""

import os
import tempfile
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.obstacles import check_config
from glassformer.tracing.engines.vllm.version import check_version, find_version
from glassformer.tracing.engines.vllm.worker import (
    EXTENSION,
    Order,
    find_recorder,
    start_recording,
    stop_recording,
)
from glassformer.tracing.guard import Guard
from glassformer.tracing.selection import Selection
from glassformer.tracing.text_labels import label_rows
from glassformer.tracing.trace import Run, Trace

_PATIENCE = 0.5  # seconds until it is seen whether the engine still lives


@contextmanager
def watch_engine(
    engine: Any,
    tokenizer: Any,
    *,
    selection: Selection,
    outputs: bool,
    device: torch.device | str | None,
    budget: int | str | None,
    folder: str | Path | None,
    requests: str = "all",
) -> Iterator[Trace]:
    """Record requests that an engine serves while the context is open, one run for each."""
    if requests not in ("all", "asking"):
        raise TraceError(f'requests must be "all" or "asking"; got {requests!r}.')
    workers = _Workers(engine)
    order = Order(
        key=uuid.uuid4().hex,
        process=os.getpid(),
        layers=_as_list(selection.layers),
        heads=_as_list(selection.heads),
        rows=_encode_rows(selection.rows),
        every=selection.every,
        outputs=outputs,
        device=None if device is None else str(device),
        budget=budget,
        folder=None if folder is None else str(folder),
        requests=requests,
    )
    tokenizer = tokenizer if tokenizer is not None else _find_tokenizer(engine)
    guard, trace = Guard("gf.watch"), Trace()
    if (refusal := workers.start(order)) is not None:
        raise TraceError(refusal)
    recorder = find_recorder(order.key)
    if recorder is not None:  # the engine is in this process: what it has served can be seen now
        recorder.tokenizer, trace = tokenizer, recorder.trace
    is_failing = True
    try:
        yield trace
        is_failing = False
    finally:
        with guard.catch("vLLM"):
            workers.stop(order, trace, guard, tokenizer)
        if guard.faults and not trace.runs:
            trace.recorded.append(Run(refusals=dict(guard.faults)))
        guard.warn(is_failing=is_failing, stacklevel=7)


class _Workers:
    """The workers of an engine, wherever they run."""

    def __init__(self, engine: Any) -> None:
        check_version(find_version())
        kinds = {kind.__name__ for kind in type(engine).__mro__}
        if "LLM" not in kinds:
            raise TraceError(f"watch takes a vllm.LLM; got {type(engine).__name__}.")
        self.engine = engine
        config = engine.llm_engine.vllm_config
        check_config(config)
        self.is_extended = config.parallel_config.worker_extension_cls == EXTENSION
        self.is_near = type(engine.llm_engine.engine_core).__name__ == "InprocClient"
        if not (self.is_extended or self.is_near):
            raise TraceError(
                "vLLM runs this engine in a process of its own, whose workers were not prepared. "
                f'Build it by LLM(…, worker_extension_cls="{EXTENSION}"), or in this process by '
                "setting VLLM_ENABLE_V1_MULTIPROCESSING=0 before."
            )

    def start(self, order: Order) -> str | None:
        """Begin to record; a sentence where that is not possible."""
        method = "glassformer_start" if self.is_extended else start_recording
        answers = self._call(method, asdict(order))
        return next((answer for answer in answers if answer is not None), None)

    def stop(self, order: Order, trace: Trace, guard: Guard, tokenizer: Any) -> None:
        """End the recording; what comes from another process is put into the trace."""
        method = "glassformer_stop" if self.is_extended else stop_recording
        with tempfile.TemporaryDirectory(prefix="glassformer-", dir=order.folder) as folder:
            answers = self._call(method, order.key, order.process, folder)
            for answer in answers:
                guard.faults |= answer["faults"]
            if (path := answers[0].get("path")) is not None:
                found = Trace.load(path)  # the file of one worker, or the folder of several
                trace.model |= found.model
                trace.recorded[:] = found.recorded
                for run in trace.recorded:
                    with guard.catch("labels"):
                        label_run(run, tokenizer)

    def _call(self, method: Any, *args: Any) -> list[Any]:
        """Call a method of every worker; vLLM itself waits for ever for a process that died."""
        if self.is_near:
            return self.engine.collective_rpc(method, args=args)
        core = self.engine.llm_engine.engine_core
        answers: Future[list[Any]] = Future()

        def call() -> None:
            try:
                answers.set_result(self.engine.collective_rpc(method, args=args))
            except Exception as error:
                answers.set_exception(error)

        threading.Thread(target=call, daemon=True).start()
        while True:
            try:
                return answers.result(timeout=_PATIENCE)
            except TimeoutError:
                if answers.done():  # the call has ended meanwhile, or with this very error
                    return answers.result()
                if core.resources.engine_dead:
                    raise TraceError("The engine's process has ended.") from None


def label_run(run: Run, tokenizer: Any) -> None:
    """Labels for a run from another process, whose worker has no tokenizer."""
    words = run.texts.get("tokens")
    if words is None or tokenizer is None:
        return
    words.labels = label_rows(tokenizer, words.tokens)
    for site in run.sites.values():
        chosen = run.texts.get(site.queries)
        if site.rows is not None and chosen is not None:
            chosen.labels = [[row[i] for i in site.rows] for row in words.labels]


def _find_tokenizer(engine: Any) -> Any:
    """The engine's own; None where it was built to take token ids only."""
    if engine.llm_engine.model_config.skip_tokenizer_init:
        return None
    return engine.get_tokenizer()


def _as_list(numbers: Any) -> list[int] | None:
    return None if numbers is None else sorted(int(n) for n in numbers)


def _encode_rows(rows: Any) -> Any:
    if rows is None or isinstance(rows, str):
        return rows
    if isinstance(rows, slice):
        return {"slice": [rows.start, rows.stop, rows.step]}
    return _as_list(rows)
