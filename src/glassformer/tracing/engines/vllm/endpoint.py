"""The plug-in for `vllm serve`: requests ask to be recorded, replies say where the trace is.

    VLLM_PLUGINS=glassformer vllm serve my-model \\
        --worker-extension-cls glassformer.tracing.engines.vllm.worker.RecordingWorker \\
        --additional-config '{"glassformer": {"folder": "traces", "budget": "64 MiB"}}'

vLLM loads the entry point of the group `vllm.endpoint_plugins` only if VLLM_PLUGINS names it. It
adds routes and a middleware to the server; the workers are reached through vLLM's client alone.
"""

import asyncio
import shutil
import uuid
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.obstacles import check_config
from glassformer.tracing.engines.vllm.request_options import NAME, RequestOptions
from glassformer.tracing.engines.vllm.request_tracing import RequestTracing
from glassformer.tracing.engines.vllm.statistics_report import join_reports
from glassformer.tracing.engines.vllm.version import check_version, find_version
from glassformer.tracing.engines.vllm.watching import label_run
from glassformer.tracing.engines.vllm.worker import EXTENSION, ServerSettings
from glassformer.tracing.guard import Guard, describe
from glassformer.tracing.operand_store import parse_bytes
from glassformer.tracing.selection import Selection
from glassformer.tracing.trace import Trace

ROUTE = f"/v1/{NAME}"  # vLLM asks for the API key below /v1
_REMEMBERED = 64  # answers, for clients that ask for them afterwards


class TraceEndpoint:
    """What vLLM makes of the entry point: `attach_router`, then `init_state`, once each."""

    name = NAME
    required_tasks = ("generate",)

    def __init__(self) -> None:
        self.engine: Any = None
        self.folder: Path | None = None
        self.limit: int | None = None
        self.secret = uuid.uuid4().hex
        self.extent: tuple[int | None, int] = (None, 1)
        self.answers: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def attach_router(self, app: Any) -> None:
        app.add_middleware(RequestTracing, endpoint=self)
        app.add_api_route(f"{ROUTE}/{{key}}", self.tell_answer, methods=["GET"])
        app.add_api_route(f"{ROUTE}/{{key}}/trace", self.send_trace, methods=["GET"])

    async def init_state(self, engine_client: Any, _state: Any, args: Any) -> None:
        """Prepare the workers; refuse to start a server that cannot record as configured."""
        check_version(find_version())
        config = engine_client.vllm_config
        check_config(config)
        if config.parallel_config.worker_extension_cls != EXTENSION:
            raise TraceError(
                f"Recording requests needs workers that were prepared for it. Start the server "
                f"with --worker-extension-cls {EXTENSION}."
            )
        settings = self._read_settings((getattr(args, "additional_config", None) or {}).get(NAME))
        answers = await engine_client.collective_rpc("glassformer_open", args=(asdict(settings),))
        for answer in answers:
            if "refusal" in answer:
                raise TraceError(answer["refusal"])
        self.extent = tuple(answers[0]["extent"])
        self.engine = engine_client

    def _read_settings(self, given: dict[str, Any] | None) -> ServerSettings:
        given = dict(given or {})
        folder, most = given.pop("folder", None), given.pop("most", 4)
        self.limit = parse_bytes(given.pop("budget", "64 MiB"))
        if given:
            raise TraceError(
                f"Settings of {NAME} are folder, budget and most; got {', '.join(given)}."
            )
        if not isinstance(most, int) or most < 1:
            raise TraceError(f"most must be a whole number from 1 up; got {most!r}.")
        if folder is not None:
            self.folder = Path(folder)
            if not self.folder.is_dir():
                raise TraceError(f"folder must be there to keep traces in; {folder} is not.")
        return ServerSettings(secret=self.secret, limit=self.limit, most=most)

    def read_options(self, given: dict[str, Any]) -> RequestOptions:
        """What a request asks for; raises a TraceError where that cannot be done."""
        options = RequestOptions.read(given, Selection(rows="last"), self.limit)
        assert options is not None
        options.selection.check(*self.extent)
        if options.kind == "trace" and self.folder is None:
            raise TraceError(
                "This server keeps no traces: it was started without a folder for them. Ask for "
                f'"{NAME}": "statistics".'
            )
        return options

    async def collect(self, key: str, options: RequestOptions, reason: str | None) -> None:
        """Fetch what was recorded of a request that has ended; it never raises."""
        answer: dict[str, Any] = {"key": key, "kind": options.kind}
        parts = None
        if options.kind == "trace" and self.folder is not None:
            parts = self.folder / f".{key}"
        try:
            args = (self.secret + key, reason, None if parts is None else str(parts), options.top)
            found = await self.engine.collective_rpc("glassformer_collect", args=args)
            faults = {name: why for part in found for name, why in part["faults"].items()}
            if faults:
                answer["missing"] = faults
            elif parts is None:
                answer["runs"] = join_reports([part["runs"] for part in found])
            else:
                answer |= await asyncio.to_thread(self._write_trace, parts, key)
        except Exception as error:  # a dead engine, a full disk: the reply is served all the same
            answer["missing"] = {"vLLM": describe(error)}
        finally:
            if parts is not None:
                _remove(parts)
        self.answers[key] = answer
        while len(self.answers) > _REMEMBERED:
            self.answers.popitem(last=False)

    def _write_trace(self, parts: Path, key: str) -> dict[str, Any]:
        """One file from those of the workers, with labels, which workers do not know."""
        assert self.folder is not None
        trace = Trace.load(parts)
        tokenizer = getattr(self.engine.renderer, "tokenizer", None)
        for run in trace.runs:
            with Guard("gf.watch").catch("labels"):
                label_run(run, tokenizer)
        trace.save(self.folder / f"{key}.trace")
        runs = [{"sites": list(run.sites), "missing": run.refusals} for run in trace.runs]
        return {"file": f"{key}.trace", "runs": runs}

    async def tell_answer(self, request: Request) -> Response:
        key = request.path_params["key"]
        if key in self.answers:
            return JSONResponse(self.answers[key])
        return _tell_unknown(key)

    async def send_trace(self, request: Request) -> Response:
        key = request.path_params["key"]
        answer = self.answers.get(key, {})
        if self.folder is None or "file" not in answer:
            return _tell_unknown(key)
        return FileResponse(self.folder / answer["file"])


def _remove(parts: Path) -> None:
    """The file of one worker, or the folder of several."""
    if parts.is_dir():
        shutil.rmtree(parts, ignore_errors=True)
    else:
        with suppress(OSError):
            parts.unlink(missing_ok=True)


def _tell_unknown(key: str) -> Response:
    message = f"No recorded request has the key {key}; the last {_REMEMBERED} are remembered."
    return JSONResponse({"error": {"message": message, "code": 404}}, status_code=404)
