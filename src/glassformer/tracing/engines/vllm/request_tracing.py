"""The middleware of a server: finds requests that ask to be recorded, and completes their replies.

A reply in JSON gets a field `glassformer`. A stream stays as it is, for clients that know all of
its events; its header `x-glassformer` has the address of the answer, which is there when the stream
ends. Requests that do not ask pass unchanged.
"""

import json
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from glassformer.errors import GlassformerError
from glassformer.tracing.engines.vllm.request_options import KEY, NAME, RequestOptions

if TYPE_CHECKING:
    from glassformer.tracing.engines.vllm.endpoint import TraceEndpoint

HEADER = "x-glassformer"
LEFT = "the client left before the request was finished"
FAILED = "the request failed"

Message = Any
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class RequestTracing:
    """ASGI middleware around all routes of the server."""

    def __init__(self, app: Any, endpoint: "TraceEndpoint") -> None:
        self.app, self.endpoint = app, endpoint

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if not _may_ask(scope):
            await self.app(scope, receive, send)
            return
        body, end = await _read_body(receive)
        request = _find_request(body)
        if request is None:
            await self.app(scope, _replay(body, end, receive), send)
            return
        try:
            options = self.endpoint.read_options(request["vllm_xargs"])
        except GlassformerError as error:
            said = {"message": str(error), "type": "BadRequestError", "param": "vllm_xargs"}
            await JSONResponse({"error": {**said, "code": 400}}, 400)(scope, receive, send)
            return
        key = uuid.uuid4().hex
        request["vllm_xargs"][KEY] = self.endpoint.secret + key
        body = json.dumps(request).encode()
        scope = {**scope, "headers": list(scope["headers"])}
        MutableHeaders(scope=scope)["content-length"] = str(len(body))
        reply = TracedReply(self.endpoint, key, options, send)
        try:
            await self.app(scope, reply.watch(_replay(body, end, receive)), reply.send)
        finally:
            await reply.collect(FAILED)


class TracedReply:
    """One reply, whose end is held back until what was recorded is there."""

    def __init__(
        self, endpoint: "TraceEndpoint", key: str, options: RequestOptions, send: Send
    ) -> None:
        self.endpoint, self.key, self.options, self._send = endpoint, key, options, send
        self.start: Message = None  # held back where the reply is JSON
        self.body = b""
        self.has_left = self.is_collected = False

    def watch(self, receive: Receive) -> Receive:
        async def watched() -> Message:
            message = await receive()
            self.has_left |= message["type"] == "http.disconnect"
            return message

        return watched

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            headers[HEADER] = f"/v1/{NAME}/{self.key}"
            message = {**message, "headers": headers.raw}
            if headers.get("content-type", "").startswith("application/json"):
                self.start = message
            else:
                await self._send(message)
            return
        is_last = message["type"] == "http.response.body" and not message.get("more_body")
        if is_last:
            await self.collect(None)
        if self.start is None:
            await self._send(message)
            return
        self.body += message.get("body", b"")
        if is_last:
            await self._send_json()

    async def _send_json(self) -> None:
        content = json.loads(self.body)
        if isinstance(content, dict) and self.start["status"] == 200:
            content[NAME] = self.endpoint.answers.get(self.key)
            self.body = json.dumps(content, ensure_ascii=False).encode()
            headers = MutableHeaders(raw=self.start["headers"])
            headers["content-length"] = str(len(self.body))
            self.start = {**self.start, "headers": headers.raw}
        await self._send(self.start)
        await self._send({"type": "http.response.body", "body": self.body})

    async def collect(self, reason: str | None) -> None:
        """Fetch what was recorded, once; the reason says why the request ended too early."""
        if not self.is_collected:
            self.is_collected = True
            reason = LEFT if self.has_left else reason
            await self.endpoint.collect(self.key, self.options, reason)


def _may_ask(scope: Any) -> bool:
    if scope["type"] != "http" or scope["method"] != "POST":
        return False
    return Headers(scope=scope).get("content-type", "").startswith("application/json")


def _find_request(body: bytes) -> dict[str, Any] | None:
    """The request, if it asks to be recorded; what is not valid JSON is left to the server."""
    if f'"{NAME}"'.encode() not in body:
        return None
    try:
        request = json.loads(body)
    except ValueError:
        return None
    asked = request.get("vllm_xargs") if isinstance(request, dict) else None
    return request if isinstance(asked, dict) and NAME in asked else None


async def _read_body(receive: Receive) -> tuple[bytes, Message | None]:
    """The whole body, and the message that ended it early."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts), message
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts), None


def _replay(body: bytes, end: Message | None, receive: Receive) -> Receive:
    """`receive` as if the body had not been read yet."""
    waiting = [{"type": "http.request", "body": body, "more_body": end is not None}]
    if end is not None:
        waiting.append(end)

    async def replayed() -> Message:
        return waiting.pop(0) if waiting else await receive()

    return replayed
