"""The middleware and the routes of a server, around an engine that is a stand-in."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from event_loop import run_apart
from glassformer.errors import TraceError
from glassformer.tracing import Run, Site, Trace, TracedText
from glassformer.tracing.engines.vllm import endpoint as endpoint_module
from glassformer.tracing.engines.vllm.endpoint import TraceEndpoint
from glassformer.tracing.engines.vllm.request_tracing import FAILED, LEFT, RequestTracing
from glassformer.tracing.engines.vllm.statistics_report import join_reports, report_run
from glassformer.tracing.engines.vllm.worker import EXTENSION


def make_trace(heads: tuple[int, ...] | None = None) -> Trace:
    rng = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, 4, 5, 8, generator=rng).unbind(0)
    if heads is not None:
        q, k, v = (t[:, list(heads)] for t in (q, k, v))
    site = Site(name="decoder.0.self", q=q, k=k, v=v, heads=heads)
    words = TracedText(torch.arange(5)[None], [])
    return Trace([Run({site.name: site}, {"tokens": words}, {"decoder.1.self": "not seen"})])


class StandIn:
    """The workers' side: one trace, whatever was asked."""

    renderer = None

    def __init__(self) -> None:
        self.calls: list[tuple] = []
        self.error: Exception | None = None

    async def collective_rpc(self, method: str, args: tuple = ()) -> list[dict[str, Any]]:
        self.calls.append(args)
        if self.error is not None:
            raise self.error
        _, _, folder, top = args
        if folder is None:
            return [{"faults": {}, "runs": [report_run(r, top) for r in make_trace().runs]}]
        make_trace().save(folder)
        return [{"faults": {}}]


@pytest.fixture
def engine() -> StandIn:
    return StandIn()


@pytest.fixture
def client(engine: StandIn, tmp_path: Path) -> TestClient:
    async def answer(request: Request) -> Any:
        body = await request.json()
        if body.get("stream"):
            return StreamingResponse(iter(["data: a\n\n", "data: [DONE]\n\n"]))
        if body.get("fail"):
            raise RuntimeError("no")
        return JSONResponse({"text": "é", "got": body.get("vllm_xargs")})

    endpoint = TraceEndpoint()
    endpoint.engine, endpoint.folder, endpoint.limit = engine, tmp_path, 1000
    endpoint.extent = (2, 4)
    app = Starlette(routes=[Route("/v1/completions", answer, methods=["POST"])])
    app.add_middleware(RequestTracing, endpoint=endpoint)
    app.add_route("/v1/glassformer/{key}", endpoint.tell_answer)
    app.add_route("/v1/glassformer/{key}/trace", endpoint.send_trace)
    return TestClient(app)


def ask(client: TestClient, kind: str = "trace", **more: Any) -> Any:
    asked = {"glassformer": kind, **more.pop("options", {})}
    return client.post("/v1/completions", json={"vllm_xargs": asked, **more})


def test_others_pass_unchanged(client: TestClient, engine: StandIn) -> None:
    for xargs in (None, {"session": "glassformer"}, {"glassformer_layers": [0]}):
        reply = client.post("/v1/completions", json={"vllm_xargs": xargs})
        assert reply.json() == {"text": "é", "got": xargs}
        assert "x-glassformer" not in reply.headers
    with pytest.raises(ValueError, match="delimiter"):  # left to the server
        client.post(
            "/v1/completions",
            content=b'{"glassformer"',
            headers={"content-type": "application/json"},
        )
    assert engine.calls == []


def test_reply_says_where_the_trace_is(client: TestClient, tmp_path: Path) -> None:
    reply = ask(client)
    told = reply.json()["glassformer"]
    assert reply.json()["text"] == "é"
    assert [p.name for p in tmp_path.iterdir()] == [told["file"]]  # nothing beside it
    assert Trace.load(tmp_path / told["file"]).names == ["decoder.0.self"]
    missing = {"decoder.1.self": "not seen"}
    assert told["runs"] == [{"sites": ["decoder.0.self"], "missing": missing}]
    assert client.get(reply.headers["x-glassformer"]).json() == told
    sent = client.get(f"{reply.headers['x-glassformer']}/trace").content
    assert sent == (tmp_path / told["file"]).read_bytes()


def test_statistics_are_in_the_reply_alone(client: TestClient, tmp_path: Path) -> None:
    told = ask(client, "statistics", options={"glassformer_top": 2}).json()["glassformer"]
    site, found = make_trace()["decoder.0.self"], told["runs"][0]["sites"]["decoder.0.self"]
    torch.testing.assert_close(torch.tensor(found["entropy"]), site.entropy())
    torch.testing.assert_close(torch.tensor(found["sink"]), site.weights()[..., 0])
    torch.testing.assert_close(torch.tensor(found["largest"]), site.statistics().largest[0])
    assert torch.tensor(found["top_keys"])[1].equal(site.top(head=1, k=2).indices)
    assert found["rows"] == [0, 1, 2, 3, 4] and found["heads"] == [0, 1, 2, 3]
    assert list(tmp_path.iterdir()) == []


def test_statistics_of_two_workers_are_those_of_one() -> None:
    whole = report_run(make_trace().run, 3)
    parts = [[report_run(make_trace(heads).run, 3)] for heads in ((0, 1), (2, 3))]
    assert join_reports(parts) == [whole]


def test_stream_is_followed_by_the_answer(client: TestClient, tmp_path: Path) -> None:
    reply = ask(client, stream=True)
    assert reply.text == "data: a\n\ndata: [DONE]\n\n"
    assert (tmp_path / client.get(reply.headers["x-glassformer"]).json()["file"]).exists()


def test_keys_of_clients_are_replaced(client: TestClient, engine: StandIn) -> None:
    got = ask(client, options={"glassformer_key": "../mine"}).json()["got"]["glassformer_key"]
    assert engine.calls[0][0] == got != "../mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"glassformer": "all"}, 'glassformer must be "trace" or "statistics"; got \'all\'.'),
        ({"glassformer_layers": [2]}, "This model has layers 0 … 1; got layers=[2]."),
        (
            {"glassformer_heads": 3},
            'Layers, heads and rows must be lists of numbers, or rows "last"; got 3.',
        ),
        (
            {"glassformer_rows": "first"},
            "Layers, heads and rows must be lists of numbers, or rows \"last\"; got 'first'.",
        ),
        (
            {"glassformer_every": 0},
            f"glassformer_every must be a whole number from 1 to {1 << 31}; got 0.",
        ),
        (
            {"glassformer_top": 101},
            "glassformer_top must be a whole number from 1 to 100; got 101.",
        ),
        (
            {"glassformer_budget": "much"},
            "A budget must be bytes, or written as \"500 MiB\"; got 'much'.",
        ),
    ],
)
def test_bad_options_are_told(
    client: TestClient, engine: StandIn, options: dict[str, Any], message: str
) -> None:
    reply = ask(client, options=options)
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, message)
    assert engine.calls == []


def test_dead_worker_costs_the_trace_alone(client: TestClient, engine: StandIn) -> None:
    engine.error = RuntimeError("EngineCore died")
    reply = ask(client)
    assert reply.json()["text"] == "é"
    assert "EngineCore died" in reply.json()["glassformer"]["missing"]["vLLM"]


def test_request_that_fails_is_collected(client: TestClient, engine: StandIn) -> None:
    with pytest.raises(RuntimeError, match="no"):
        ask(client, fail=True)
    assert engine.calls[0][1] == FAILED


def test_client_that_leaves_is_noted(engine: StandIn, tmp_path: Path) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    endpoint = TraceEndpoint()
    endpoint.engine, endpoint.folder = engine, tmp_path
    body = json.dumps({"vllm_xargs": {"glassformer": "trace"}}).encode()
    messages = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "headers": headers}
    run_apart(lambda: RequestTracing(app, endpoint)(scope, receive, send))
    assert engine.calls[0][1] == LEFT


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"place": "x"}, "Settings of glassformer are folder, budget and most; got place"),
        ({"most": 0}, "most must be a whole number from 1 up; got 0"),
        ({"folder": "/nowhere"}, "folder must be there to keep traces in; /nowhere is not"),
    ],
)
def test_bad_settings_are_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        TraceEndpoint()._read_settings(settings)


def make_config(extension: str) -> Any:
    return SimpleNamespace(
        parallel_config=SimpleNamespace(worker_extension_cls=extension),
        compilation_config=SimpleNamespace(cudagraph_mode=None),
        speculative_config=None,
        use_v2_model_runner=False,
    )


@pytest.mark.parametrize(
    ("extension", "version", "message"),
    [
        ("", "0.32.0", "needs workers that were prepared for it. Start the server with"),
        (EXTENSION, "0.32.0", "This model has layers"),
        (EXTENSION, "0.33.1", r"tested with vLLM 0\.32; installed is vLLM 0\.33\.1"),
    ],
)
def test_server_that_cannot_record_does_not_start(
    monkeypatch: pytest.MonkeyPatch, extension: str, version: str, message: str
) -> None:
    class Refusing:
        vllm_config = make_config(extension)

        async def collective_rpc(self, method: str, args: tuple = ()) -> list[dict[str, Any]]:
            assert method == "glassformer_open" and args[0]["limit"] == 64 << 20
            return [{"refusal": "This model has layers of another kind."}]

    monkeypatch.setattr(endpoint_module, "find_version", lambda: version)
    endpoint = TraceEndpoint()
    with pytest.raises(TraceError, match=message):
        state = SimpleNamespace(additional_config=None)
        run_apart(lambda: endpoint.init_state(Refusing(), None, state))
    assert endpoint.engine is None


def test_without_a_folder_there_are_statistics_alone(client: TestClient) -> None:
    with pytest.raises(TraceError, match="This server keeps no traces"):
        TraceEndpoint().read_options({"glassformer": "trace"})
