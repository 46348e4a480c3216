"""Two workers with half of the heads each: one trace, equal to that of transformers."""

from pathlib import Path
from typing import Any

import pytest

import glassformer as gf
from closeness import assert_close
from engines.vllm.served_models import build_engine, close_engine, generate
from glassformer.tracing.engines.vllm.worker import EXTENSION


def test_heads_of_two_workers_are_one_trace(
    folders: dict[str, Path], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0|1")  # vLLM wants a NUMA node for each
    engine: Any = build_engine(
        folders["llama"],
        enforce_eager=True,
        tensor_parallel_size=2,
        worker_extension_cls=EXTENSION,
    )
    prompts = [[5, 9, 7], [*range(3, 60)]]
    bare = generate(engine, prompts)
    engine.reset_prefix_cache()
    with gf.watch(engine) as trace:
        answers = generate(engine, prompts)
    with gf.watch(engine, heads=[3], layers=[1], rows="last") as one:  # of the second worker
        generate(engine, prompts)
    close_engine(engine)
    assert answers == bare
    texts = [p + a[:-1] for p, a in zip(prompts, answers, strict=True)]
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
