"""Threads that share a model: each context sees the passes of its own thread, and nobody raises."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from glassformer.tracing import watch
from letter_models import letter_model
from tiny_models import tiny
from tracing.watched_architectures import same

N_THREADS, N_PASSES = 4, 25


def foreign() -> tuple[Any, ...]:
    return tiny("llama"), watch, lambda n: torch.arange(3, 4 + n)[None]


def ours() -> tuple[Any, ...]:
    return letter_model("decoder"), watch, lambda n: torch.arange(4, 5 + n)[None]


def torch_layers() -> tuple[Any, ...]:
    layer = nn.TransformerEncoderLayer(12, 3, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    return model, watch, lambda n: torch.randn(1, n + 1, 12)


kinds = pytest.mark.parametrize("make", [foreign, ours, torch_layers])


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as Python can, so that what can collide does."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def run_all(work: list[Callable[[], None]]) -> list[BaseException]:
    failures: list[BaseException] = []

    def guarded(part: Callable[[], None]) -> None:
        try:
            with torch.no_grad():
                part()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(part,)) for part in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@kinds
def test_many_threads_observe_one_model(make: Callable[[], Any], switching: None) -> None:
    """Each reads a text of its own length, so that a pass of another thread would show."""
    model, context, text = make()
    together = threading.Barrier(N_THREADS)

    def passes(n: int) -> None:
        given = text(n)
        expected = model(given)
        together.wait()
        for _ in range(N_PASSES):
            with context(model) as trace:
                assert same(model(given), expected)
                model(given)
            assert [site.shape[2] for run in trace.runs for site in run.sites.values()] == [
                given.shape[1]
            ] * 2 * len(trace)
            assert len(trace.runs) == 2 and not trace.run.refusals

    assert run_all([lambda n=n: passes(n) for n in range(N_THREADS)]) == []
    assert as_it_was(model)


@kinds
@pytest.mark.parametrize("first_in_first_out", [True, False])
def test_contexts_overlap_in_any_order(make: Callable[[], Any], first_in_first_out: bool) -> None:
    """One thread enters and leaves while the other is inside: turns are taken by hand."""
    model, context, text = make()
    turns = [threading.Event() for _ in range(5)]
    shapes: dict[str, list[int]] = {}

    def first() -> None:
        with context(model) as trace:
            turns[0].set()
            turns[1].wait()
            model(text(2))
            if not first_in_first_out:
                turns[2].set()
                turns[3].wait()
                model(text(2))
        shapes["first"] = [site.shape[2] for run in trace.runs for site in run.sites.values()]
        turns[2].set()

    def second() -> None:
        turns[0].wait()
        with context(model) as trace:
            turns[1].set()
            turns[2].wait()
            model(text(4))
        turns[3].set()
        shapes["second"] = [site.shape[2] for run in trace.runs for site in run.sites.values()]

    assert run_all([first, second]) == []
    times = 1 if first_in_first_out else 2
    assert set(shapes["first"]) == {3} and set(shapes["second"]) == {5}
    assert len(shapes["first"]) == times * len(shapes["second"])
    assert as_it_was(model)


def as_it_was(model: nn.Module) -> bool:
    return not any(
        "forward" in vars(part) or part._forward_hooks or part._forward_pre_hooks
        for part in model.modules()
    )
