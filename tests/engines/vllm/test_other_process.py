"""An engine in processes of its own, as vLLM has it by default: the trace comes back as a file."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import glassformer as gf
from closeness import assert_close
from engines.vllm.served_models import build_engine, close_engine, generate, save_tokenizer
from glassformer.errors import RecordingWarning
from glassformer.tracing.engines.vllm.worker import EXTENSION

PROMPTS = [[5, 9, 7], [*range(3, 60)]]


@pytest.fixture(scope="module")
def engine(folders: dict[str, Path]) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
        built = build_engine(folders["llama"], enforce_eager=True, worker_extension_cls=EXTENSION)
    assert type(built.llm_engine.engine_core).__name__ != "InprocClient"
    yield built
    close_engine(built)


def test_trace_comes_back(
    engine: Any, folders: dict[str, Path], expected: Any, tmp_path: Path
) -> None:
    shutil.copy(folders["llama"] / "config.json", tmp_path)
    save_tokenizer(tmp_path)
    bare = generate(engine, PROMPTS)
    engine.reset_prefix_cache()
    with gf.watch(engine, AutoTokenizer.from_pretrained(tmp_path), rows="last") as trace:
        answers = generate(engine, PROMPTS)
    assert answers == bare
    texts = [p + a[:-1] for p, a in zip(PROMPTS, answers, strict=True)]
    found = expected(folders["llama"], texts)
    for run, layers in zip(trace.runs, found, strict=True):
        for site, weights in zip(run.sites.values(), layers, strict=True):
            assert_close(site.weights(), weights[:, -7:], 1e-5)
    assert trace.runs[0].texts["tokens"].labels[0][:3] == ["w5", "w9", "w7"]
    site = trace.runs[0].sites["decoder.0.self"]
    assert trace.runs[0].texts[site.queries].labels[0][0] == "w7"


def test_trace_of_a_dead_engine_says_so(engine: Any) -> None:
    """The last test of this engine."""
    (process,) = engine.llm_engine.engine_core.resources.engine_manager.processes
    message = "gf.watch could not record vLLM"
    with pytest.warns(RecordingWarning, match=message), gf.watch(engine) as trace:
        generate(engine, PROMPTS[:1])
        process.kill()
        process.join()
    (run,) = trace.runs
    assert not run.sites and list(run.refusals) == ["vLLM"]
