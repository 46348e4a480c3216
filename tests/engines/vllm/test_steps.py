"""However an engine cuts its work into steps, a request is one text with one matrix per layer."""

from pathlib import Path
from typing import Any

import pytest

import glassformer as gf
from closeness import assert_close
from engines.vllm.served_models import build_engine, close_engine, generate, make_prompts
from glassformer.tracing import Trace
from glassformer.tracing.engines.vllm.worker import EXTENSION


def check_weights(trace: Trace, texts: list[list[int]], found: Any) -> None:
    runs = {tuple(run.texts["tokens"].tokens[0].tolist()): run for run in trace.runs}
    assert runs.keys() == set(map(tuple, texts))
    for text, layers in zip(texts, found, strict=True):
        run = runs[tuple(text)]
        assert len(run.sites) == 2 and not run.refusals
        for site, weights in zip(run.sites.values(), layers, strict=True):
            assert_close(site.weights(), weights[:, site.query_positions], 1e-5)


def test_preempted_requests_are_whole(
    folders: dict[str, Path], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.v1.core.sched.scheduler import Scheduler

    preempted: list[str] = []
    preempt = Scheduler._preempt_request

    def count(self: Any, request: Any, *args: Any, **options: Any) -> None:
        preempted.append(request.request_id)
        preempt(self, request, *args, **options)

    monkeypatch.setattr(Scheduler, "_preempt_request", count)
    # Pages for 10 × 32 tokens; the four requests need 16 of them in the end.
    page = 2 * 2 * 2 * 32 * 64 * 4  # layers, k and v, heads, tokens, width, bytes
    engine = build_engine(
        folders["llama"], enforce_eager=True, kv_cache_memory_bytes=11 * page, max_num_seqs=4
    )
    prompts = [each[:60] for each in make_prompts()[6:10]]
    with gf.watch(engine) as trace:
        answers = generate(engine, prompts, n_tokens=60)
    close_engine(engine)
    assert preempted
    texts = [p + a[:-1] for p, a in zip(prompts, answers, strict=True)]
    check_weights(trace, texts, expected(folders["llama"], texts))


def test_rejected_tokens_of_speculation_are_dropped(
    folders: dict[str, Path], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a process of its own: where numba was imported, vLLM 0.32 can build no further engine.
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    guessing = {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_max": 2,
        "prompt_lookup_min": 1,
    }
    engine = build_engine(
        folders["llama"],
        enforce_eager=True,
        speculative_config=guessing,
        worker_extension_cls=EXTENSION,
    )
    prompts = [[5, 9, 7, 5, 9, 7, 5, 9], [*range(3, 60)] * 2, [8, 8, 8, 8]]
    bare = generate(engine, prompts, n_tokens=20)
    engine.reset_prefix_cache()
    with gf.watch(engine) as trace:
        answers = generate(engine, prompts, n_tokens=20)
    close_engine(engine)
    assert answers == bare
    texts = [p + a[:-1] for p, a in zip(prompts, answers, strict=True)]
    check_weights(trace, texts, expected(folders["llama"], texts))
