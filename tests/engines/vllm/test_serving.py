"""Sixteen requests at once: weights are those of transformers, tokens those of the bare engine."""

from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import glassformer as gf
from closeness import assert_close, assert_same
from engines.vllm.served_models import (
    build_engine,
    close_engine,
    generate,
    generate_without_plugin,
    make_prompts,
)
from glassformer.tracing import Trace

FAMILIES = ["llama", "qwen3", "gemma2"]
CASES = [
    (family, implementation, is_eager)
    for family in FAMILIES
    for implementation in ("vllm", "transformers")
    for is_eager in (False, True)
]
NAMES = ["decoder.0.self", "decoder.1.self"]


class Served(NamedTuple):
    config: Any  # vLLM's, of the engine
    classes: list[str]  # of its model
    prompts: list[list[int]]
    bare: list[list[int]]  # the answers of the engine by itself
    answers: list[list[int]]  # of the engine when it is watched
    cached: list[list[int]]  # and once more, with the prompts in its cache
    trace: Trace
    last: Trace  # rows="last" of the latter
    expected: list[list[Tensor]]


@pytest.fixture(
    scope="module",
    params=CASES,
    ids=[f"{f}-{i}-{'eager' if e else 'compiled'}" for f, i, e in CASES],
)
def served(request: pytest.FixtureRequest, folders: dict[str, Path], expected: Any) -> Served:
    family, implementation, is_eager = request.param
    engine: Any = build_engine(folders[family], model_impl=implementation, enforce_eager=is_eager)
    (classes,) = engine.collective_rpc(_name_classes)
    prompts = make_prompts()
    bare = generate(engine, prompts)
    engine.reset_prefix_cache()
    with gf.watch(engine) as trace:
        answers = generate(engine, prompts)
    with gf.watch(engine, rows="last") as last:
        cached = generate(engine, prompts)
    config = engine.llm_engine.vllm_config
    close_engine(engine)
    texts = [prompt + answer[:-1] for prompt, answer in zip(prompts, answers, strict=True)]
    found = expected(folders[family], texts)
    return Served(config, classes, prompts, bare, answers, cached, trace, last, found)


def _name_classes(worker: Any) -> list[str]:
    return [kind.__module__ for kind in type(worker.model_runner.model).__mro__]


def test_engine_is_the_one_that_was_asked_for(
    served: Served, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    is_compiled = served.config.compilation_config.mode.name != "NONE"
    assert is_compiled == ("compiled" in name)
    is_theirs = any("models.transformers" in each for each in served.classes)
    assert is_theirs == ("-transformers-" in name), served.classes
    most = served.config.scheduler_config.max_num_batched_tokens
    assert any(len(prompt) > 2 * most for prompt in served.prompts)  # prompts are cut
    assert len({len(prompt) for prompt in served.prompts}) > 8 and len(served.prompts) == 16
    assert {site.q.shape[-1] for run in served.trace.runs for site in run.sites.values()} == {64}


def test_tokens_are_those_of_the_bare_engine(served: Served) -> None:
    assert served.answers == served.bare
    assert served.cached == served.bare


def test_one_run_for_each_request(served: Served) -> None:
    texts = [p + a[:-1] for p, a in zip(served.prompts, served.answers, strict=True)]
    for trace in (served.trace, served.last):
        assert [run.texts["tokens"].tokens[0].tolist() for run in trace.runs] == texts
        assert [list(run.sites) for run in trace.runs] == [NAMES] * len(texts)
        assert [run.refusals for run in trace.runs] == [{}] * len(texts)


def test_weights_are_those_of_transformers(served: Served) -> None:
    for run, layers in zip(served.trace.runs, served.expected, strict=True):
        for site, expected in zip(run.sites.values(), layers, strict=True):
            rows = slice(None) if site.rows is None else list(site.rows)
            assert_close(site.weights(), expected[:, rows], 1e-5)


def test_prompts_that_begin_alike_are_read_once(served: Served) -> None:
    """… and what was not computed again is not among the rows."""
    rows = [next(iter(run.sites.values())).rows for run in served.trace.runs]
    assert any(chosen is not None for chosen in rows[8:])


def test_last_rows_are_those_that_tokens_are_sampled_from(served: Served) -> None:
    for i, (run, layers) in enumerate(zip(served.last.runs, served.expected, strict=True)):
        n, S = len(served.answers[i]), layers[0].shape[-1]
        for site, expected in zip(run.sites.values(), layers, strict=True):
            assert site.query_positions.tolist() == list(range(S - n, S))
            assert_close(site.weights(), expected[:, S - n :], 1e-5)


def test_saved_trace_is_the_same(served: Served, tmp_path: Path) -> None:
    served.last.save(tmp_path / "served.trace")
    loaded = gf.Trace.load(tmp_path / "served.trace")
    for ours, theirs in zip(loaded.runs, served.last.runs, strict=True):
        for name in NAMES:
            assert_close(ours.sites[name].weights(), theirs.sites[name].weights(), 1e-6)
            assert_same(ours.sites[name].v, theirs.sites[name].v)


def test_engine_without_the_plugin_writes_the_same(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = build_engine(folders["llama"], enforce_eager=True)
    with gf.watch(engine):
        answers = generate(engine, make_prompts())
    close_engine(engine)
    monkeypatch.setenv("VLLM_PLUGINS", "none")
    with get_context("spawn").Pool(1) as pool:
        found = pool.apply(generate_without_plugin, (folders["llama"], make_prompts()))
    assert found == answers


def test_output_is_what_the_operands_give(folders: dict[str, Path]) -> None:
    engine: Any = build_engine(folders["gemma2"], enforce_eager=True)
    with gf.watch(engine, outputs=True, heads=[1, 2], layers=[0]) as trace:
        generate(engine, make_prompts()[:9])
    close_engine(engine)
    for run in trace.runs:
        (site,) = run.sites.values()
        assert site.heads == (1, 2)
        assert site.difference_from_output() < 1e-5
        assert torch.isfinite(site.v).all()
