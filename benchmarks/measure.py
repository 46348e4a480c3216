"""How the benchmarks measure: runs that take turns, device time without the host, peak memory."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

Work = Callable[[], object]


def seconds(work: Work, device: str, ahead: torch.Tensor | None) -> float:
    """One run. On CUDA `ahead` is cleared first, so that the host has issued everything in time."""
    if device == "cpu":
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert ahead is not None
    ahead.zero_()
    start.record()
    work()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / 1000


class Comparison(NamedTuple):
    ours: float  # seconds
    theirs: float
    ratio: float
    noise: float  # theirs against itself: what the ratio would be between equals


def compare(ours: Work, theirs: Work, device: str, *, repeats: int = 60) -> Comparison:
    """Medians of runs that take turns, and the median of the ratios of neighbouring runs."""
    # 2 GiB at 4 TB/s keep the GPU busy for half a millisecond, and flush its cache.
    ahead = None if device == "cpu" else torch.empty(1 << 29, dtype=torch.float32, device=device)
    works = (theirs, ours, theirs)
    for work in works:
        work()
        work()
    rounds = [[seconds(work, device, ahead) for work in works] for _ in range(repeats)]
    median = statistics.median
    return Comparison(
        ours=median(r[1] for r in rounds),
        theirs=median((r[0] + r[2]) / 2 for r in rounds),
        ratio=median(2 * r[1] / (r[0] + r[2]) for r in rounds),
        noise=median(r[2] / r[0] for r in rounds),
    )


def peak_mib(setup: str, work: str) -> tuple[float, float]:
    """Seconds, and peak resident memory beyond what `setup` left, of code in a fresh process."""
    code = f"""
import resource, time, torch
import glassformer as gf
{setup}
before = int(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])
open('/proc/self/clear_refs', 'w').write('5')
start = time.perf_counter()
{work}
spent = time.perf_counter() - start
peak = int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])
print(spent, (peak - before) / 1024)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    spent, mib = result.stdout.split()[-2:]
    return float(spent), float(mib)
