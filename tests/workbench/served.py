"""A server of the workbench on a port of its own, for tests; asked by plain HTTP."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from glassformer.workbench.app import create_app
from glassformer.workbench.library import Library
from glassformer.workbench.pool import Pool

TOKEN = "a-token-of-the-test"
PATIENCE = 300  # seconds: a busy machine is no fault


class Server:
    """Where it listens, and how it is asked."""

    def __init__(self, port: int, pool: Pool) -> None:
        self.port, self.pool = port, pool
        self.host = f"127.0.0.1:{port}"

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body, of exactly these headers beside Host."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": self.host, **(headers or {})}
            if body is not None and "Transfer-Encoding" not in given:
                given.setdefault("Content-Length", str(len(body)))
            for name, value in given.items():
                line.putheader(name, value)
            line.endheaders(body)
            found = line.getresponse()
            return found.status, {n.lower(): v for n, v in found.getheaders()}, found.read()
        finally:
            line.close()

    def ask(self, path: str, asked: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON, as our own page asks."""
        given = {"X-Glassformer-Token": TOKEN, "Origin": f"http://{self.host}", **headers}
        if asked is None:
            status, _, body = self.send("GET", path, None, given)
        else:
            given["Content-Type"] = "application/json"
            status, _, body = self.send("POST", path, json.dumps(asked).encode(), given)
        return status, json.loads(body)


@contextmanager
def serving(jobs: str, *paths: Path, port: int = 0, **options: Any) -> Iterator[Server]:
    """A server whose workers do these jobs, started with these models, traces or runs."""
    listener = socket.create_server(("127.0.0.1", port))
    port = listener.getsockname()[1]
    pool = Pool(jobs, **options)
    hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
    app = create_app(pool, token=TOKEN, hosts=hosts, version="test", library=Library(paths))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server did not start"
    try:
        yield Server(port, pool)
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
