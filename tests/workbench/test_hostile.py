"""Hostile requests to the real jobs: refused or served, and the server goes on answering."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from glassformer.workbench.wire import JOBS
from workbench.served import TOKEN, Server, serving

RUN: dict[str, Any] = {"model": "writer", "text": "The cat sat."}
MARKUP = '<script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("glassformer.workbench.desk", size=2, most_waiting=8) as found:
        yield found


def test_markup_in_a_text_is_text(server: Server) -> None:
    given = {"X-Glassformer-Token": TOKEN, "Content-Type": "application/json"}
    body = json.dumps({**RUN, "text": MARKUP}).encode()
    status, headers, text = server.send("POST", "/api/run", body, given)
    assert status == 200 and headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"
    (run,) = json.loads(text)["page"]["runs"]
    assert "<" in "".join(filter(None, run["names"][0]))


@pytest.mark.parametrize(
    "name",
    ["../../etc", "/etc/passwd", "writer/../reader", MARKUP, "hf://org/name", "C:\\x", "", "."],
)
@pytest.mark.parametrize("job", ["run", "maps", "export"])
def test_names_that_are_not_in_the_library(server: Server, job: str, name: str) -> None:
    more = {"format": "python", "site": 0, "head": 0} if job == "export" else {}
    status, found = server.ask(f"/api/{job}", {**RUN, **more, "model": name})
    assert status == 422 and "There is no model or trace" in found["error"]


@pytest.mark.parametrize(
    "more",
    [
        {"change": "__import__('os').system('true')"},
        {"change": "ablate(" * 500},
        {"change": "ablate(decoder.0.self, head=99)"},
        {"text": ""},
        {"text": "\u0000\u202e\ud7ff" * 20},
        {"text": "a " * 99_999},
        {"to": "xx", "model": "translator"},
        {"target": "", "to": "fr", "model": "translator"},
    ],
)
def test_odd_requests_are_refused_or_served(server: Server, more: dict[str, Any]) -> None:
    status, found = server.ask("/api/run", {**RUN, **more})
    assert status in (200, 422), found
    assert status == 200 or found["error"]


def test_every_job_needs_the_token_and_our_own_page(server: Server) -> None:
    body = json.dumps(RUN).encode()
    for job in JOBS:
        status, _, _ = server.send(
            "POST", f"/api/{job}", body, {"Content-Type": "application/json"}
        )
        assert status == 401
        given = {"X-Glassformer-Token": TOKEN, "Origin": "http://evil.example"}
        assert server.send("POST", f"/api/{job}", body, given)[0] == 403
    assert server.send("GET", "/api/models")[0] == server.send("GET", "/api/schema")[0] == 401


def test_fifty_heavy_requests(server: Server) -> None:
    words = "And God said unto Moses, Go down. " * 8
    with ThreadPoolExecutor(50) as threads:
        asked = [
            threads.submit(server.ask, "/api/maps", {**RUN, "text": f"{words} {i}"})
            for i in range(50)
        ]
        assert server.ask("/api/status")[0] == 200
        codes = [each.result()[0] for each in asked]
    assert set(codes) <= {200, 503} and codes.count(200) >= 2
    assert server.ask("/api/status")[1]["waiting"] == 0


def test_clients_that_vanish(server: Server) -> None:
    body = json.dumps({**RUN, "text": "And God said unto Moses, Go down. " * 60})
    head = (
        f"POST /api/effects HTTP/1.1\r\nHost: {server.host}\r\nX-Glassformer-Token: {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.sendall(head.encode())
    assert server.ask("/api/run", RUN)[0] == 200
    while server.ask("/api/status")[1]["waiting"]:
        pass


def test_killed_workers_are_replaced(server: Server) -> None:
    for process in server.pool.process_ids:
        os.kill(process, signal.SIGKILL)
    codes = [server.ask("/api/run", {**RUN, "text": f"after {i}"})[0] for i in range(3)]
    assert codes[-1] == 200 and set(codes) <= {200, 503}
    assert server.ask("/api/status")[1]["replaced"] >= 2
