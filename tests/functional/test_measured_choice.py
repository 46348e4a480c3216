"""Two ways are timed once on a machine, and every process is told the same."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from glassformer import compilation
from glassformer.functional import measured_choice
from glassformer.functional.backends import native, native_timing
from glassformer.functional.backends.native_timing import Case
from glassformer.functional.measured_choice import Timing, measure_once

needs_kernel = pytest.mark.skipif(native.find_kernel() is None, reason="needs a C compiler")
measure = native_timing.measure  # as it is: tests are given fixed answers otherwise


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(compilation, "user_cache_path", lambda _: tmp_path / "cache")
    forget(monkeypatch)
    return tmp_path / "cache"


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process."""
    monkeypatch.setattr(measured_choice, "_answers", {})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which works add to."""
    now = [0.0]
    monkeypatch.setattr(measured_choice.time, "perf_counter", lambda: now[0])
    return now


def works(clock: list[float], ours: list[float], theirs: list[float]) -> Callable:
    """Two ways that take these seconds, one run after the other."""

    def way(seconds: list[float]) -> Callable[[], None]:
        left = iter(seconds)

        def work() -> None:
            clock[0] += next(left)

        return work

    return lambda: (way(ours), way(theirs))


def test_the_best_run_counts_and_the_first_does_not(cache: Path, clock, monkeypatch) -> None:
    monkeypatch.setattr(measured_choice, "ROUNDS", 5)
    ours = [0.001, 0.005, 0.004, 0.006, 0.004, 0.009]
    found = measure_once("?", works(clock, ours, [0.001, 0.008, 0.009, 0.012, 0.008, 0.01]))
    assert found == pytest.approx((0.004, 0.008))
    assert found.ratio == pytest.approx(0.5)
    (path,) = cache.iterdir()
    assert json.loads(path.read_text())["question"] == "?"


def test_long_work_is_timed_twice(cache: Path, clock: list[float]) -> None:
    assert measure_once("?", works(clock, [3.0] * 3, [2.0] * 3)) == pytest.approx((3.0, 2.0))
    assert clock[0] == 15.0


def test_asked_once_in_a_process_and_on_a_machine(cache: Path, clock, monkeypatch) -> None:
    def refuse():
        raise AssertionError("measured again")

    first = measure_once("?", works(clock, [0.1] * 6, [0.2] * 6))
    assert measure_once("?", refuse) == first
    forget(monkeypatch)
    assert measure_once("?", refuse) == first
    with pytest.raises(AssertionError, match="measured again"):
        measure_once("another", refuse)
    forget(monkeypatch)
    monkeypatch.setattr(measured_choice, "describe_chip", lambda: "another")
    with pytest.raises(AssertionError, match="measured again"):
        measure_once("?", refuse)


def test_the_first_process_decides(cache: Path, clock, monkeypatch) -> None:
    """Another one measures meanwhile, and finds the opposite."""
    decided = []

    def prepare():
        if not decided:
            decided.append(measured_choice._find_file("?"))
            decided[0].write_text(json.dumps({"question": "?", "ours": 2.0, "theirs": 1.0}))
        return works(clock, [0.1] * 6, [0.2] * 6)()

    assert measure_once("?", prepare) == Timing(2.0, 1.0)
    assert list(cache.iterdir()) == decided


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ours": 0, "theirs": 1}', '{"ours": "x"}'])
def test_a_damaged_file_is_replaced(text: str, cache: Path, clock, monkeypatch) -> None:
    cache.mkdir()
    measured_choice._find_file("?").write_text(text)
    found = measure_once("?", works(clock, [0.1] * 6, [0.2] * 6))
    assert found.ratio == pytest.approx(0.5)
    forget(monkeypatch)
    assert measure_once("?", lambda: None) == found
    assert len(list(cache.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_no_error(clock, monkeypatch, tmp_path: Path) -> None:
    forget(monkeypatch)
    monkeypatch.setattr(measured_choice, "find_cache", lambda: tmp_path / "nowhere")
    assert measure_once("?", works(clock, [0.1] * 6, [0.2] * 6)).ratio == pytest.approx(0.5)


@needs_kernel
@pytest.mark.parametrize("form", ["none", "causal", "mask", "bias"])
@pytest.mark.parametrize("learns", [False, True])
def test_both_kernels_do_the_same_work(form: str, learns: bool, monkeypatch) -> None:
    """The operands are the same, and so must be what comes out; no random number is drawn."""
    outputs = []
    for backend in (native, native_timing.sdpa):
        attend = backend.attend
        monkeypatch.setattr(
            backend, "attend", lambda *a, f=attend: outputs.append(f(*a)) or outputs[-1]
        )
    before = torch.get_rng_state()
    for way in native_timing._prepare(Case(form, 32, 64, learns)):
        way()
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(outputs[0], outputs[1], atol=1e-5, rtol=0)
    assert all(out.requires_grad is learns for out in outputs)


@needs_kernel
def test_measured_wherever_a_call_is_made(cache: Path) -> None:
    """Whatever is switched off around the call, gradients are timed with their backward pass."""
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        first = measure(Case("causal", 16, 64, True))
    assert 0 < first == measure(Case("causal", 16, 64, True))
    assert len(list(cache.glob("timing-*.json"))) == 1
