"""What goes wrong never costs an answer; what cannot be watched says so before it runs."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import glassformer as gf
from engines.vllm.served_models import build_engine, close_engine, generate, make_prompts
from glassformer.errors import RecordingWarning, TraceError
from glassformer.tracing.engines.vllm import served_requests, watching
from glassformer.tracing.engines.vllm.recorder import EngineRecorder

PROMPTS = make_prompts()[:3]
EAGLE = SimpleNamespace(method="eagle")


@pytest.fixture(scope="module")
def engine(folders: dict[str, Path]) -> Iterator[Any]:
    built = build_engine(folders["llama"], enforce_eager=True, max_num_batched_tokens=256)
    yield built
    close_engine(built)


@pytest.mark.parametrize(
    ("owner", "name", "message"),
    [
        (EngineRecorder, "_keep", r"could not record decoder\.0\.self, decoder\.1\.self"),
        (EngineRecorder, "_begin_batch", "could not record LlamaForCausalLM"),
        (served_requests, "assemble_run", "could not record LlamaForCausalLM"),
    ],
)
def test_fault_is_a_warning_and_the_answers_are_served(
    engine: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, message: str
) -> None:
    bare = generate(engine, PROMPTS)

    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(owner, name, fail)
    with pytest.warns(RecordingWarning, match=message):
        with gf.watch(engine) as trace:
            assert generate(engine, PROMPTS) == bare
        assert {len(run.sites) for run in trace.runs} == {0}
    assert all("no room" in why for run in trace.runs for why in run.refusals.values())
    monkeypatch.undo()
    with gf.watch(engine) as trace:
        assert generate(engine, PROMPTS) == bare
    assert {len(run.sites) for run in trace.runs} == {2}


def test_engine_is_left_as_it_was(engine: Any) -> None:
    with pytest.raises(ValueError, match="of the body"), gf.watch(engine) as trace:
        generate(engine, PROMPTS[:1])
        raise ValueError("of the body")
    assert len(trace.runs) == 1
    generate(engine, PROMPTS)
    assert len(trace.runs) == 1


def test_contexts_can_be_nested(engine: Any) -> None:
    with gf.watch(engine) as outer:
        generate(engine, PROMPTS[:1])
        with gf.watch(engine, layers=[1]) as inner:
            generate(engine, PROMPTS[1:])
        assert len(outer.runs) == 3
    assert len(inner.runs) == 2
    assert [list(run.sites) for run in inner.runs] == [["decoder.1.self"]] * 2


def test_budget_sends_operands_to_disk(engine: Any, tmp_path: Path) -> None:
    with gf.watch(engine, budget="1 KiB", folder=tmp_path) as trace:
        generate(engine, PROMPTS)
    assert float(trace["decoder.1.self"].weights(head=0).sum(-1).min()) == pytest.approx(1.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": [2]}, r"layers 0 … 1; got layers=\[2\]"),
        ({"heads": [4]}, "heads 0 … 3; got"),
        ({"residual": True}, "an engine gives its attention alone"),
        ({"first_layer": 2}, "first_layer=2 needs a model; an engine has all layers"),
        ({"folder": "/nowhere"}, "folder must be there"),
    ],
)
def test_options_are_checked_first(engine: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message), gf.watch(engine, **options):
        pass


def test_other_releases_are_refused(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "find_version", lambda: "0.29.1")
    message = r"vLLM 0\.32; installed is vLLM 0\.29\.1"
    with pytest.raises(TraceError, match=message), gf.watch(engine):
        pass


def test_engine_elsewhere_says_what_it_needs(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class MPClient:
        pass

    monkeypatch.setattr(engine.llm_engine, "engine_core", MPClient())
    message = r"worker_extension_cls=.*VLLM_ENABLE_V1_MULTIPROCESSING=0"
    with pytest.raises(TraceError, match=message), gf.watch(engine):
        pass


@pytest.mark.parametrize(
    ("where", "name", "value", "message"),
    [
        ("vllm_config", "speculative_config", EAGLE, "this engine uses eagle"),
        ("parallel_config", "pipeline_parallel_size", 2, "has pipeline_parallel_size=2"),
    ],
)
def test_engines_that_cannot_be_followed_are_refused(
    engine: Any, monkeypatch: pytest.MonkeyPatch, where: str, name: str, value: Any, message: str
) -> None:
    config = engine.llm_engine.vllm_config
    owner = config if where == "vllm_config" else getattr(config, where)
    monkeypatch.setattr(owner, name, value)
    with pytest.raises(TraceError, match=message), gf.watch(engine):
        pass
