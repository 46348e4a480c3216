"""Requests are taken out of packed batches and joined: however it was cut, each is one text."""

import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
import torch

from closeness import assert_close
from glassformer.errors import RecordingWarning, TraceError
from glassformer.functional import Causal, Window
from glassformer.functional.reference import attention_weights
from glassformer.tracing.engines.vllm import recorder as recorder_file
from glassformer.tracing.engines.vllm import served_requests
from glassformer.tracing.engines.vllm.recorder import EngineRecorder
from glassformer.tracing.engines.vllm.watched_model import WatchedModel
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection
from glassformer.tracing.trace import Trace
from tracing.engines.vllm.toy_engine import NAMES, Attention, H, ToyEngine, tokens_of


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ToyEngine:
    made = ToyEngine()
    here = SimpleNamespace(get_forward_context=lambda: made.context)
    monkeypatch.setattr(recorder_file, "import_module", lambda _: here)
    return made


def listen(engine: ToyEngine, store: OperandStore | None = None, **options: Any) -> EngineRecorder:
    recorder = EngineRecorder(
        WatchedModel(engine.runner), Selection(**options), store or OperandStore()
    )
    recorder.check()
    recorder.attach()
    return recorder


def check_run(engine: ToyEngine, trace: Trace, i: int, request: str, S: int) -> None:
    """Weights of every recorded row and head are those of the definition."""
    run = trace.runs[i]
    assert run.refusals == {}
    assert run.texts["tokens"].tokens[0].tolist() == tokens_of(request)[:S].tolist()
    for name, site in zip(NAMES, run.sites.values(), strict=True):
        q, k, _ = (t[:S].transpose(0, 1)[None] for t in engine.operands(name, request))
        mask = Causal() if name == NAMES[0] else Causal() & Window(left=2)
        expected = attention_weights(q, k, mask=mask, scale=0.3)
        rows = list(range(S)) if site.rows is None else list(site.rows)
        assert_close(site.weights(), expected[0][list(site.head_numbers)][:, rows], 1e-6)


def test_packed_steps_become_runs(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5), b=(0, 3, 9))
    engine.step(a=(5, 6, 5), b=(3, 9, 9), c=(0, 1, 2))
    engine.step(c=(1, 2, 2), b=(9, 10, 9))  # the order changes, one has ended
    recorder.detach()
    engine.step(a=(6, 7, 5))
    trace = recorder.finish()
    assert [site.rows for site in trace.runs[1].sites.values()] == [None, None]
    for i, (request, S) in enumerate((("a", 6), ("b", 10), ("c", 2))):
        check_run(engine, trace, i, request, S)


def test_trace_grows_while_it_is_read(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5))
    check_run(engine, recorder.trace, 0, "a", 5)
    engine.step(a=(5, 6, 5))
    check_run(engine, recorder.trace, 0, "a", 6)


def test_trace_that_is_read_later_lets_the_engine_go(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5), b=(0, 3, 9))
    engine.step(a=(5, 6, 5), b=(3, 9, 9))
    recorder.detach()
    trace, served = recorder.finish(is_read_later=True), ref(recorder.served)
    assert trace.recorded == []
    layers = [ref(layer) for layer in engine.layers.values()]
    operands = {name: engine.operands(name, "b") for name in NAMES}
    del recorder
    engine.layers.clear()
    gc.collect()
    assert [layer() for layer in layers] == [None, None]
    engine.operands = lambda name, _: operands[name]  # type: ignore[method-assign]
    check_run(engine, trace, 1, "b", 9)
    runs = trace.runs
    assert trace.runs is runs and [len(run.sites) for run in runs] == [2, 2]
    del trace
    assert served() is None  # operands are freed with the trace, without a search for cycles


def test_what_fails_when_it_is_read_is_told_then(
    engine: ToyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5))
    trace = recorder.finish(is_read_later=True)
    monkeypatch.setattr(served_requests, "assemble_run", lambda *_: {}["absent"])
    with pytest.warns(RecordingWarning, match="could not record Toy: an internal error, KeyError"):
        (run,) = trace.runs
    assert list(run.refusals) == ["Toy"]


def test_preempted_request_is_one_run(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5))
    engine.step(a=(5, 6, 5))
    engine.step(a=(6, 7, 5))
    engine.step(a=(0, 4, 5))  # all again, up to a part of the prompt …
    engine.step(a=(4, 7, 5))
    engine.step(a=(7, 8, 5))
    check_run(engine, recorder.finish(), 0, "a", 8)


def test_cached_prefix_is_read_from_its_pages(engine: ToyEngine) -> None:
    engine.step(a1=(0, 12, 12))
    recorder = listen(engine)
    engine.pages["a2"] = engine.pages["a1"][:2]
    engine.step(a2=(8, 11, 11), b=(0, 2, 2))
    engine.step(a2=(11, 12, 11))
    trace = recorder.finish()
    check_run(engine, trace, 0, "a2", 12)
    check_run(engine, trace, 1, "b", 2)
    assert {site.rows for site in trace.runs[0].sites.values()} == {(8, 9, 10, 11)}


def test_preempted_request_may_lose_its_cached_prefix(engine: ToyEngine) -> None:
    engine.step(a1=(0, 12, 12))
    recorder = listen(engine)
    engine.pages["a2"] = engine.pages["a1"][:2]
    engine.step(a2=(8, 11, 11))
    del engine.pages["a2"]
    engine.step(a2=(0, 11, 11))
    check_run(engine, recorder.finish(), 0, "a2", 11)


@pytest.mark.parametrize("budget", [0, 2_000, 20_000])
def test_a_budget_changes_where_and_nothing_else(
    engine: ToyEngine, budget: int, tmp_path: Path
) -> None:
    engine.step(a1=(0, 12, 12))
    store = OperandStore(budget=budget, folder=tmp_path)
    recorder = listen(engine, store)
    engine.pages["a2"] = engine.pages["a1"][:2]
    engine.step(a2=(8, 11, 11), b=(0, 2, 9))
    engine.step(a2=(11, 12, 11), b=(2, 9, 9))
    assert store.in_memory <= budget
    trace = recorder.finish()
    assert store.in_memory <= budget and (store.on_disk > 0) == (budget < 20_000)
    check_run(engine, trace, 0, "a2", 12)
    check_run(engine, trace, 1, "b", 9)


def test_parts_can_be_selected(engine: ToyEngine) -> None:
    recorder = listen(engine, layers=[1], heads=[1, 3], rows="last")
    engine.step(a=(0, 3, 5), b=(0, 2, 2))
    engine.step(a=(3, 5, 5), b=(2, 3, 2))
    engine.step(a=(5, 6, 5), b=(3, 4, 2))
    trace = recorder.finish()
    for i, (request, S, rows) in enumerate((("a", 6, (4, 5)), ("b", 4, (1, 2, 3)))):
        (site,) = trace.runs[i].sites.values()
        assert (site.name, site.heads, site.rows) == ("decoder.1.self", (1, 3), rows)
        q, k, _ = (t[:S].transpose(0, 1)[None] for t in engine.operands(NAMES[1], request))
        mask = Causal() & Window(left=2)
        expected = attention_weights(q, k, mask=mask, scale=0.3)[0][[1, 3]]
        assert_close(site.weights(), expected[:, list(rows)], 1e-6)


def test_fault_costs_the_site_alone(engine: ToyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 3, 3))
    keep = recorder._keep

    def fail(batch: Any, layer: Attention, *rest: Any) -> None:
        if layer.layer_name == NAMES[1]:
            raise MemoryError("no room")
        keep(batch, layer, *rest)

    monkeypatch.setattr(recorder, "_keep", fail)
    engine.step(a=(3, 4, 3), b=(0, 2, 2))
    monkeypatch.undo()
    engine.step(c=(0, 2, 2))
    trace = recorder.finish()
    for run in trace.runs[:2]:
        assert list(run.sites) == ["decoder.0.self"]
        assert "MemoryError: no room" in run.refusals["decoder.1.self"]
    assert list(trace.runs[2].sites) == ["decoder.0.self", "decoder.1.self"]
    assert list(recorder.guard.faults) == ["decoder.1.self"]


def test_steps_in_halves_spoil_the_trace(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.context = SimpleNamespace(ubatch_slices=[1, 2])
    x = torch.zeros(1, 1, 1)
    recorder.hear(engine.layers[NAMES[0]], (x, x, x), x, None, x)
    (run,) = recorder.finish().runs
    assert set(run.refusals.values()) == {
        "Steps that vLLM computes in two halves cannot be followed"
    }


def test_steps_that_passed_unseen_are_told(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 3, 3))
    recorder.detach()
    engine.step(a=(3, 4, 3))
    recorder.attach()
    engine.step(a=(4, 5, 3))
    (run,) = recorder.finish().runs
    assert run.refusals == {"Toy": "Its tokens 3 … 3 passed unseen"}


def test_layers_that_cannot_be_shown_have_a_reason(engine: ToyEngine) -> None:
    engine.layers[NAMES[1]].impl.sinks = torch.zeros(H)  # type: ignore[assignment]
    recorder = listen(engine)
    engine.step(a=(0, 3, 3))
    (run,) = recorder.finish().runs
    assert list(run.sites) == ["decoder.0.self"]
    assert run.refusals == {
        "decoder.1.self": "its attention has sinks, which is not read from engines yet"
    }


def test_model_without_a_layer_to_watch_is_refused(engine: ToyEngine) -> None:
    for layer in engine.layers.values():
        layer.attn_type = "encoder_only"
    with pytest.raises(TraceError, match=r"No layer of Toy can be watched; model\.layers\.0"):
        listen(engine)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"layers": [2]}, r"layers 0 … 1; got layers=\[2\]"), ({"heads": [4]}, "heads 0 … 3; got")],
)
def test_numbers_out_of_range_are_refused(
    engine: ToyEngine, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        listen(engine, **options)
