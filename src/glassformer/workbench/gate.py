"""Who may ask the server: this machine's browser, on this server's own pages, with its token.

A page of another site can make a browser send requests here. It cannot choose the Host or the
Origin of these, nor add the token, which is new at every start and travels in a header of its own,
never in a cookie. Answers forbid the browser everything that our pages do not need.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

MOST_BYTES = 1 << 20  # of a request
TOKEN = "x-glassformer-token"
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self' blob:",
        "style-src 'self' 'unsafe-inline'",  # components set widths and colours
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Gate:
    """Lets through what may be asked, and answers everything else itself."""

    def __init__(self, app: Any, *, token: str, hosts: set[str]) -> None:
        self.app, self.token, self.hosts = app, token.encode(), hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no websockets here
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        send = _with_headers(send, scope)
        refusal = self._refuse(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        body = await _read_body(receive)
        if body is None:
            await _answer(send, 413, _say_size())
            return
        await self.app(scope, _replay(body, receive), send)

    def _refuse(self, scope: Scope, headers: dict[str, bytes]) -> tuple[int, str] | None:
        """A status and a sentence for what may not be asked; None for what may."""
        host = headers.get("host", b"").decode("latin-1").lower()
        if host not in self.hosts:
            return 403, f"This server answers as {', '.join(sorted(self.hosts))} only."
        origin = headers.get("origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host}":
            return 403, "Requests from pages of other sites are refused."
        site = headers.get("sec-fetch-site", b"none")
        is_page = scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/")
        if site not in (b"same-origin", b"none") and not is_page:
            return 403, "Requests from pages of other sites are refused."
        given = headers.get(TOKEN, b"")
        if scope["path"].startswith("/api/") and not hmac.compare_digest(given, self.token):
            return 401, "The token is missing or of an earlier start. Open the printed address."
        length = headers.get("content-length", b"0")
        if not length.isdigit():
            return 400, "Content-Length must be a number."
        if int(length) > MOST_BYTES:
            return 413, _say_size()
        return None


def _say_size() -> str:
    return f"A request may have up to {MOST_BYTES >> 20} MiB."


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too large; one without a length is counted as it arrives."""
    pieces, total = [], 0
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        total += len(pieces[-1])
        if total > MOST_BYTES:
            return None
        if not message.get("more_body"):  # the end, or the client has left
            return b"".join(pieces)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then what comes after it: that the client has left."""
    is_read = False

    async def replayed() -> MutableMapping[str, Any]:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _with_headers(send: Send, scope: Scope) -> Send:
    extra = dict(HEADERS)
    if scope["path"].startswith("/api/"):
        # No browser keeps the answer to a POST, and Chromium reports a stream that says no-store
        # as aborted, even if it was read to its end (microsoft/playwright#42742).
        extra["cache-control"] = "private, no-cache" if scope["method"] == "POST" else "no-store"

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            headers += [(name.encode(), value.encode()) for name, value in extra.items()]
            message = {**message, "headers": headers}
        await send(message)

    return sent


async def _answer(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
