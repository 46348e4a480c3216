"""Jobs over HTTP: as one JSON answer, or line by line with its progress.

A client that accepts `application/x-ndjson` hears of progress: lines {"progress": 0.4}, of some
jobs lines {"partial": …} with what is known by then, and at last one with "result" or "error". A
client that leaves gives its job up.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from glassformer.workbench.pool import Fault, Mistake, Pool, Refused, WorkerDied
from glassformer.workbench.routes import Route

LINES = "application/x-ndjson"
_BUSY = "Too many requests are waiting. Try again in a moment."
_DIED = "The process that computed this has ended, and another one has taken its place. Try again."


async def answer(
    request: Request, pool: Pool, name: str, arguments: dict[str, Any], *, route: Route
) -> Response:
    """Ask the pool, and answer as the client wants to hear it."""
    if LINES in request.headers.get("accept", ""):
        lines = _stream(pool, name, arguments, route)
        return StreamingResponse(lines, media_type=LINES)
    task = asyncio.create_task(pool.ask(name, arguments, route=route))
    leaving = asyncio.create_task(_wait_until_left(request))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return Response(status_code=204)  # nobody hears it
        try:
            return Response(task.result(), media_type="application/json")
        except Exception as error:
            status, sentence = _explain(error)
            return JSONResponse({"error": sentence}, status)
    finally:
        for each in (task, leaving):
            each.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await each


async def _stream(
    pool: Pool, name: str, arguments: dict[str, Any], route: Route
) -> AsyncIterator[bytes]:
    heard: asyncio.Queue[bytes | None] = asyncio.Queue()
    asked = pool.ask(
        name,
        arguments,
        route=route,
        progress=lambda share: heard.put_nowait(_line({"progress": share})),
        partial=lambda value: heard.put_nowait(b'{"partial": %b}\n' % value),
    )
    task = asyncio.create_task(asked)
    task.add_done_callback(lambda _: heard.put_nowait(None))
    try:
        while (line := await heard.get()) is not None:
            yield line
        try:
            yield b'{"result": %b}\n' % task.result()
        except Exception as error:
            status, sentence = _explain(error)
            yield _line({"error": sentence, "status": status})
    finally:
        task.cancel()  # where the client has left


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode() + b"\n"


async def _wait_until_left(request: Request) -> None:
    while not await request.is_disconnected():
        await asyncio.sleep(0.1)


def _explain(error: Exception) -> tuple[int, str]:
    """The status and the sentence of a job that has failed."""
    if isinstance(error, Mistake):
        return 422, str(error)
    if isinstance(error, Refused):
        return 503, _BUSY
    if isinstance(error, WorkerDied):
        return 503, _DIED
    if isinstance(error, Fault):
        return 500, str(error)
    raise error
