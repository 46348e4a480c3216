"""From a free port to a running server, and to its end."""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

import glassformer
from glassformer.workbench.library import Library
from glassformer.workbench.pool import FirstJob, Pool
from glassformer.workbench.routes import choose_route

HOST = "127.0.0.1"
_GRACE = 1  # seconds in which open answers may end


def listen(port: int) -> socket.socket:
    """A listener on this machine alone; an OSError where the port is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # a port that has just been left is free; one that is used is not
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def serve(
    listener: socket.socket, library: Library, *, workers: int, on_open: Callable[[str], None]
) -> None:
    """Serve the workbench until it is interrupted; `on_open` gets the address to open.

    A worker loads what the workbench opens with while the server and the browser start.
    """
    pool = Pool("glassformer.workbench.desk", size=workers, first=_first_job(library))
    pool.prepare()
    import uvicorn  # now: a worker takes longer, and has begun

    from glassformer.workbench.app import create_app

    port, token = listener.getsockname()[1], secrets.token_urlsafe(24)
    app = create_app(
        pool,
        token=token,
        hosts={f"{HOST}:{port}", f"localhost:{port}"},
        version=glassformer.__version__,
        library=library,
        on_open=lambda: on_open(f"http://{HOST}:{port}/#token={token}"),
    )
    config = uvicorn.Config(
        app, log_level="error", timeout_graceful_shutdown=_GRACE, lifespan="on", ws="none"
    )

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await pool.close()  # first: open answers end with a sentence, and nothing is cut off
            await super().shutdown(sockets)

    server = Server(config)
    if hasattr(signal, "SIGHUP"):  # a terminal that is closed ends it in order, too
        signal.signal(signal.SIGHUP, lambda *_: server.handle_exit(signal.SIGTERM, None))
    with suppress(KeyboardInterrupt):  # the usual way to end it; uvicorn has ended in order
        asyncio.run(server.serve(sockets=[listener]))


def _first_job(library: Library) -> FirstJob:
    """What the first screen shows, as its request asks for it."""
    source = library.default
    asked: dict[str, object] = {
        "model": source.name,
        "text": source.example or "",
        "to": source.languages[-1] if source.languages else None,
    }
    return FirstJob("run", asked, choose_route("run", asked, library))
