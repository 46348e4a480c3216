"""`glassformer serve` as a process: its address, what it opens, how it ends."""

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from glassformer.cli import serve

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)")


class Workbench:
    """A running workbench: its process, its port and its token."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None and process.stderr is not None
        found = ADDRESS.search(process.stdout.readline())
        assert found is not None, process.stderr.read()
        self.port, self.token = int(found[1]), found[2]
        self.advice = process.stdout.readline()

    def ask(self, path: str, asked: Any = None) -> tuple[int, Any]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"X-Glassformer-Token": self.token, "Content-Type": "application/json"}
        body = None if asked is None else json.dumps(asked)
        line.request("GET" if asked is None else "POST", path, body, headers)
        found = line.getresponse()
        content = found.read()
        line.close()
        return found.status, json.loads(content)

    def children(self) -> list[int]:
        pid = self.process.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(each) for each in text.split()]


@contextmanager
def running(*words: str, code: str = "") -> Iterator[Workbench]:
    """The command in a session of its own, as a terminal would start it; it must not outlive us."""
    code = code or "from glassformer.cli import main; raise SystemExit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "GLASSFORMER_LANG": "en", "OMP_NUM_THREADS": "1"},
    )
    try:
        yield Workbench(process)
    finally:
        process.kill()
        process.communicate()


def end(bench: Workbench, number: int, *, group: bool) -> tuple[int, str, str]:
    """The exit code and what was said, after a signal; every process must be gone."""
    watched = [os.pidfd_open(pid) for pid in bench.children()]
    assert len(watched) >= 2
    (os.killpg if group else os.kill)(bench.process.pid, number)
    out, err = bench.process.communicate(timeout=60)
    for each in watched:
        assert select.select([each], [], [], 30)[0], "a process was left behind"
        os.close(each)
    return bench.process.returncode, out, err


def test_it_opens_the_first_model_and_ends_by_ctrl_c():
    with running("--no-browser", "--workers", "1") as bench:
        assert bench.advice == "Press Ctrl-C to stop it.\n"
        status, models = bench.ask("/api/models")
        assert status == 200 and models[0]["name"] == "translator"
        asked = {"model": "translator", "text": models[0]["example"], "to": "fr"}
        status, run = bench.ask("/api/run", asked)
        assert status == 200 and run["outcome"]["text"] == "Le chat s'assit sur le tapis."
        assert end(bench, signal.SIGINT, group=True) == (0, "The workbench has stopped.\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_can_be_ended_while_its_workers_still_start(number):
    with running("--no-browser") as bench:
        code, _, err = end(bench, number, group=number != signal.SIGTERM)
    assert err == "" and code in (0, -signal.SIGTERM)


def test_it_says_nothing_of_answers_that_it_cuts_short():
    """Ctrl-C while an experiment runs: the page learns why its answer ends, nothing is printed."""
    with running("--no-browser", "--workers", "1") as bench:
        line = http.client.HTTPConnection("127.0.0.1", bench.port, timeout=120)
        headers = {"X-Glassformer-Token": bench.token, "Content-Type": "application/json"}
        headers["Accept"] = "application/x-ndjson"
        line.request("POST", "/api/learn/measure", json.dumps({"name": "lstm"}), headers)
        answer = line.getresponse()
        assert "progress" in json.loads(answer.readline())
        said = end(bench, signal.SIGINT, group=True)
        last = json.loads(answer.read().splitlines()[-1])
        line.close()
    assert said == (0, "The workbench has stopped.\n", "")
    assert last["error"] == "The server has ended."


def test_workers_end_with_a_server_that_is_killed():
    with running("--no-browser") as bench:
        assert bench.ask("/api/run", {"model": "reader", "text": "A king."})[0] == 200
        code, _, _ = end(bench, signal.SIGKILL, group=False)
    assert code == -signal.SIGKILL


def test_the_server_loads_no_torch_and_opens_the_browser():
    code = (
        "import sys, webbrowser\n"
        "webbrowser.open = lambda address: print('opened', address, flush=True)\n"
        "from glassformer.cli import main\n"
        "main()\n"
        "print('torch' in sys.modules)"
    )
    with running("--workers", "1", code=code) as bench:
        opened = bench.process.stdout.readline()
        assert opened == f"opened http://127.0.0.1:{bench.port}/#token={bench.token}\n"
        _, out, err = end(bench, signal.SIGINT, group=True)
    assert (out.splitlines()[-1], err) == ("False", "")


def test_a_port_that_is_taken(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = run("serve", "--port", port, "--no-browser")
    assert (code, out) == (2, "") and f"cannot use port {port}:" in err and "--port 0" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "65536"], "--port must be in 0 … 65535; got 65536."),
        (["--workers", "0"], "--workers must be in 1 … 64; got 0."),
        (["/nowhere/at/all"], "/nowhere/at/all is not there"),
    ],
)
def test_what_cannot_be_served(run, words, said):
    code, out, err = run("serve", "--no-browser", *words)
    assert (code, out) == (2, "") and said in err


def test_a_missing_extra_is_named(run, monkeypatch):
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "uvicorn" else name)
    code, out, err = run("serve")
    assert (code, out) == (2, "") and "fastapi and uvicorn" in err and "[workbench]" in err


def test_it_speaks_chinese(run):
    code, out, _ = run("serve", "--help", "--lang", "zh")
    assert code == 0 and "工作台" in out
