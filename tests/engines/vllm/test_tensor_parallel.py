"""Two workers with half of the heads each: one trace, equal to that of transformers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import glassformer as gf
from closeness import assert_close
from engines.vllm.served_models import build_engine, close_engine, generate
from glassformer.errors import RecordingWarning
from glassformer.tracing.engines.vllm.worker import EXTENSION

PROMPTS = [[5, 9, 7], [*range(3, 60)]]


@pytest.fixture(scope="module")
def engine(folders: dict[str, Path]) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
        patch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0|1")  # vLLM wants a NUMA node for each
        built = build_engine(
            folders["llama"],
            enforce_eager=True,
            tensor_parallel_size=2,
            worker_extension_cls=EXTENSION,
        )
    yield built
    close_engine(built)


def test_heads_of_two_workers_are_one_trace(
    engine: Any, folders: dict[str, Path], expected: Any
) -> None:
    bare = generate(engine, PROMPTS)
    engine.reset_prefix_cache()
    with gf.watch(engine) as trace:
        answers = generate(engine, PROMPTS)
    with gf.watch(engine, heads=[3], layers=[1], rows="last") as one:  # of the second worker
        generate(engine, PROMPTS)
    assert answers == bare
    texts = [p + a[:-1] for p, a in zip(PROMPTS, answers, strict=True)]
    found = expected(folders["llama"], texts)
    for run, layers in zip(trace.runs, found, strict=True):
        assert not run.refusals and len(run.sites) == 2
        for site, weights in zip(run.sites.values(), layers, strict=True):
            assert site.heads is None
            assert_close(site.weights(), weights, 1e-5)
    for run, layers in zip(one.runs, found, strict=True):
        (site,) = run.sites.values()
        assert site.heads == (3,)
        assert_close(site.weights(), layers[1][3:4, -7:], 1e-5)


def test_dead_worker_costs_the_trace_that_is_open(engine: Any, tmp_path: Path) -> None:
    """The last test of this engine: vLLM ends with any of its workers."""
    with gf.watch(engine) as finished:
        generate(engine, PROMPTS)
    finished.save(tmp_path / "finished.trace")
    (core,) = engine.llm_engine.engine_core.resources.engine_manager.processes
    workers = [p for p in psutil.Process(core.pid).children() if "Worker" in p.name()]
    with (
        pytest.warns(RecordingWarning, match="gf.watch could not record vLLM"),
        gf.watch(engine) as trace,
    ):
        generate(engine, PROMPTS)
        workers[1].kill()
        core.join()
    (run,) = trace.runs
    assert not run.sites and list(run.refusals) == ["vLLM"]
    assert len(gf.Trace.load(tmp_path / "finished.trace").runs) == 2
