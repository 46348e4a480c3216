"""Times, bytes and growth, measured so that a busy machine disturbs them little."""

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


def measure_seconds(
    ways: Mapping[str, Callable[[], Any]], *, repeats: int, at_least: float = 0.0
) -> dict[str, float]:
    """The median seconds of each way; they take turns, so that a busy moment hits all of them.

    Counted is the time of this thread on its core: what other programs do in between is none of
    ours. A way that is over sooner than `at_least` seconds is called several times in a row.
    """
    counts = {}
    for name, way in ways.items():
        way()  # the first call also allocates, loads and plans
        began = time.thread_time()
        way()
        once = time.thread_time() - began
        counts[name] = max(1, math.ceil(at_least / max(once, 1e-9)))
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            began = time.thread_time()
            for _ in range(counts[name]):
                way()
            taken[name].append((time.thread_time() - began) / counts[name])
    return {name: statistics.median(times) for name, times in taken.items()}


def measure_peak_bytes(way: Callable[[], Any]) -> int:
    """The most bytes that torch held at once for a call, inputs not counted."""
    from torch.profiler import ProfilerActivity, profile

    # The profiler's library writes on standard error unless told not to before its first use.
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        way()
    results: Any = found.profiler.kineto_results  # type: ignore[union-attr]
    events = [event for event in results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def fit_exponent(sizes: Sequence[float | int], costs: Sequence[float | int]) -> float:
    """The e of cost ∝ sizeᵉ that fits best: the slope where both sides are logarithmic.

    >>> round(fit_exponent([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    x, y = [math.log(s) for s in sizes], [math.log(max(c, 1e-300)) for c in costs]
    return statistics.linear_regression(x, y).slope


def largest_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """How far two tensors lie apart where they do most."""
    return float((a.detach().double() - b.detach().double()).abs().max())
