"""What was recorded is freed with the trace: it must not wait for the garbage collector.

Python's collector counts objects, not bytes: a loop would fill a GPU's memory long before it runs.
"""

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.tracing import Trace
from tiny_models import tiny

TOKENS = torch.tensor([[5, 7, 9, 3]])
NEW = {"max_new_tokens": 4, "min_new_tokens": 4}
Record = Callable[[], Trace]


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def watch_pass(kind: str) -> Record:
    model = tiny(kind)

    def record() -> Trace:
        with gf.watch(model) as trace, torch.no_grad():
            model(TOKENS)
        return trace

    return record


def watch_growing() -> Record:
    """The trace is read while it grows."""
    model = tiny("llama")

    def record() -> Trace:
        with gf.watch(model, residual=True) as trace, torch.no_grad():
            model(TOKENS)
            assert len(trace.runs) == 1
            model(TOKENS)
        return trace

    return record


def watch_generation(kind: str, n_beams: int = 1) -> Record:
    model = tiny(kind)

    def record() -> Trace:
        with gf.watch(model, residual=n_beams == 1) as trace:
            for _ in range(2):  # the second run closes the first
                model.generate(TOKENS, **NEW, num_beams=n_beams)
        return trace

    return record


def watch_ours(kind: str) -> Record:
    model = gf.load(kind)

    def record() -> Trace:
        with gf.watch(model, residual=True) as trace:
            if kind == "translator":
                gf.translate(model, "The cat sat.", to="fr")
            elif kind == "reader":
                gf.embed(model, ["The cat sat."])
            else:
                gf.generate(model, "The cat", max_new_tokens=3)
        return trace

    return record


def watch_torch() -> Record:
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)

    def record() -> Trace:
        with gf.watch(layer) as trace:
            layer(torch.randn(1, 4, 12))
        return trace

    return record


def change_heads(kind: str) -> Record:
    model = tiny(kind)

    def record() -> Trace:
        edits = [gf.Ablate("decoder.1.self", head=0), gf.Skip("decoder.0")]
        with gf.change(model, edits, residual=True) as trace, torch.no_grad():
            model(TOKENS)
        return trace

    return record


def rerun() -> Record:
    model = tiny("llama")
    with gf.watch(model, residual=True) as known, torch.no_grad():
        model(TOKENS)

    def record() -> Trace:
        assert next(model.parameters()).requires_grad  # the trace does not keep the model
        return gf.rerun(known, gf.Ablate("decoder.0.self", head=0))  # and all that follows

    return record


def watch_twice() -> Record:
    model = tiny("llama")

    def record() -> Trace:
        with gf.watch(model) as outer, gf.watch(model) as inner, torch.no_grad():
            model(TOKENS)
        assert len(inner.runs) == 1
        return outer

    return record


def fail() -> Record:
    """A pass that ends with an error."""
    model = tiny("llama")

    def record() -> Trace:
        with gf.watch(model) as trace, torch.no_grad():
            model(TOKENS)
            with pytest.raises(IndexError):
                model(TOKENS * 10**6)
        return trace

    return record


WAYS: dict[str, Callable[[], Record]] = {
    "llama": lambda: watch_pass("llama"),
    "bert": lambda: watch_pass("bert"),
    "bart": lambda: watch_pass("bart"),
    "growing": watch_growing,
    "generation": lambda: watch_generation("llama"),
    "beams": lambda: watch_generation("llama", 2),
    "beams of an encoder-decoder": lambda: watch_generation("bart", 2),
    "translator": lambda: watch_ours("translator"),
    "writer": lambda: watch_ours("writer"),
    "reader": lambda: watch_ours("reader"),
    "torch": watch_torch,
    "change": lambda: change_heads("llama"),
    "rerun": rerun,
    "twice": watch_twice,
    "failing": fail,
}


def look(trace: Trace) -> None:
    """What is worked out is kept on the trace, which must not lead back to it."""
    for site in trace:
        site.weights()
        site.statistics()
        str(site)
    if trace.run.streams:
        trace.residual().end.sum()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_looked_at", [False, True])
def test_it_is_freed_at_once(way: str, is_looked_at: bool) -> None:
    record = WAYS[way]()
    trace = record()
    if is_looked_at:
        look(trace)
    run = trace.runs[0]
    operands: list[Tensor] = [site.q for site in run.sites.values()]
    alive = [weakref.ref(x) for x in (trace, run, *operands)]
    assert len(alive) > 2
    del trace, run, operands
    assert [each() for each in alive] == [None] * len(alive)


@pytest.mark.parametrize("way", ["llama", "translator", "torch", "beams of an encoder-decoder"])
def test_a_loop_leaves_nothing_to_collect(way: str) -> None:
    record = WAYS[way]()
    record()
    gc.collect()
    for _ in range(3):
        record()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    ours = [x for x in gc.garbage if type(x).__module__.startswith("glassformer")]
    gc.garbage.clear()
    assert not ours
