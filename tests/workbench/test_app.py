"""The server: what it answers, what it refuses, and that nobody can keep others waiting."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from glassformer.workbench.wire.requests import ReadingRequest
from workbench.served import TOKEN, Server, serving

RUN = {"model": "writer", "text": "The cat sat."}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("workbench.sample_jobs", size=2, most_waiting=8) as found:
        yield found


def test_a_request_of_our_own_page_is_answered(server: Server) -> None:
    status, found = server.ask("/api/run", {**RUN, "to": "fr"})
    others = {name: None for name in ReadingRequest.model_fields if name not in RUN}
    assert status == 200 and found == {"run": {**others, **RUN, "to": "fr"}}
    status, found = server.ask("/api/status")
    assert (status, found["version"]) == (200, "test")


@pytest.mark.parametrize(
    ("headers", "status", "said"),
    [
        ({"Host": "evil.example"}, 403, "answers as 127.0.0.1:"),
        ({"Host": "127.0.0.1"}, 403, "answers as"),
        ({"Origin": "http://evil.example"}, 403, "pages of other sites"),
        ({"Origin": "null"}, 403, "pages of other sites"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "pages of other sites"),
        ({"X-Glassformer-Token": "guess"}, 401, "token"),
        ({"X-Glassformer-Token": ""}, 401, "token"),
        ({"X-Glassformer-Token": "tökén"}, 401, "token"),
        ({"Content-Length": "2000000"}, 413, "up to 1 MiB"),
    ],
)
def test_others_are_refused(server: Server, headers: dict, status: int, said: str) -> None:
    body = json.dumps(RUN).encode()
    given = {"X-Glassformer-Token": TOKEN, "Content-Type": "application/json", **headers}
    found, answered, text = server.send("POST", "/api/run", body, given)
    assert found == status and said in json.loads(text)["error"]
    assert "default-src 'none'" in answered["content-security-policy"]


def test_a_body_without_a_length_is_counted(server: Server) -> None:
    piece = b"%x\r\n%b\r\n" % (1 << 16, b" " * (1 << 16))
    head = (
        f"POST /api/run HTTP/1.1\r\nHost: {server.host}\r\nX-Glassformer-Token: {TOKEN}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(head.encode())
        answer = b""
        try:
            for _ in range(20):
                line.sendall(piece)
        except OSError:
            pass  # it has hung up on us
        while chunk := line.recv(4096):
            answer += chunk
            if b"}" in answer:
                break
    assert b" 413 " in answer.splitlines()[0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "JSON decode error"),
        (b"[]", "The request"),
        (b'{"model": "writer"}', "text: Field required."),
        (b'{"model": "writer", "text": "a", "more": 1}', "more: Extra inputs are not permitted."),
        (b'{"model": 7, "text": "a"}', "model: Input should be a valid string."),
        (json.dumps({**RUN, "text": "x" * 200_001}).encode(), "at most 200000 characters"),
        (b"[" * 100_000, "error parsing the body"),
    ],
)
def test_malformed_requests_are_one_sentence(server: Server, body: bytes, said: str) -> None:
    given = {"X-Glassformer-Token": TOKEN, "Content-Type": "application/json"}
    status, _, text = server.send("POST", "/api/run", body, given)
    assert status in (400, 422) and said in json.loads(text)["error"]


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/app.py", "/app.py", "//etc/passwd", "/nothing.js"]
)
def test_only_the_built_pages_can_be_read(server: Server, path: str) -> None:
    status, _, text = server.send("GET", path)
    assert status == 404 and json.loads(text)["error"] == "There is nothing at this address."


def test_progress_comes_line_by_line(server: Server) -> None:
    given = {
        "X-Glassformer-Token": TOKEN,
        "Content-Type": "application/json",
        "Accept": "application/x-ndjson",
    }
    body = json.dumps({**RUN, "text": "steps 3"}).encode()
    _, _, text = server.send("POST", "/api/run", body, given)
    lines = [json.loads(line) for line in text.splitlines()]
    assert [each.get("progress") for each in lines[:-1]] == [0.0, 1 / 3, 2 / 3]
    assert lines[-1] == {"result": "all"}


def test_a_stream_is_not_said_to_be_aborted(server: Server) -> None:
    """Chromium reports a stream with no-store as aborted, however well it ends."""
    given = {"X-Glassformer-Token": TOKEN, "Content-Type": "application/json"}
    _, headers, _ = server.send("POST", "/api/run", json.dumps(RUN).encode(), given)
    assert headers["cache-control"] == "private, no-cache"
    _, headers, _ = server.send("GET", "/api/models", None, given)
    assert headers["cache-control"] == "no-store"


def test_mistakes_faults_and_deaths_have_their_status(server: Server) -> None:
    status, found = server.ask("/api/run", {**RUN, "text": "mistake"})
    assert (status, found["error"]) == (422, "A number must be positive; got −1.")
    status, found = server.ask("/api/run", {**RUN, "text": "fault"})
    assert (status, found["error"]) == (500, "ValueError: inside")
    replaced = server.pool.replaced
    status, found = server.ask("/api/run", {**RUN, "text": "die"})
    assert status == 503 and "another one has taken its place" in found["error"]
    assert server.ask("/api/run", {**RUN, "text": "die not"})[0] == 200
    assert server.ask("/api/status")[1]["replaced"] == replaced + 1


def test_fifty_heavy_requests_leave_the_server_answering(server: Server) -> None:
    with ThreadPoolExecutor(50) as threads:
        asked = [
            threads.submit(server.ask, "/api/run", {**RUN, "text": f"steps 20 {i}"})
            for i in range(50)
        ]
        assert server.ask("/api/status")[0] == 200
        codes = [each.result()[0] for each in asked]
    assert set(codes) <= {200, 503} and codes.count(200) >= 2
    assert server.ask("/api/run", RUN)[0] == 200
    assert server.ask("/api/status")[1]["waiting"] == 0


def test_clients_that_vanish_give_their_jobs_up(server: Server) -> None:
    body = json.dumps({**RUN, "text": "steps 100000"})
    head = (
        f"POST /api/run HTTP/1.1\r\nHost: {server.host}\r\nX-Glassformer-Token: {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.sendall(head.encode())
    assert server.ask("/api/run", {**RUN, "text": "steps 2"})[1] == "all"
    for _ in range(600):
        if not server.ask("/api/status")[1]["waiting"]:
            break
    assert server.ask("/api/status")[1]["waiting"] == 0


def test_a_killed_worker_is_replaced(server: Server) -> None:
    for process in server.pool.process_ids:
        os.kill(process, signal.SIGKILL)
    codes = [server.ask("/api/run", {**RUN, "text": f"after {i}"})[0] for i in range(6)]
    assert codes[-1] == 200 and set(codes) <= {200, 503}
