"""How the benchmarks measure: runs that take turns, device time without the host, peak memory."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

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


def compare(
    ours: Work, theirs: Work, device: str, *, repeats: int = 60
) -> tuple[float, float, float]:
    """Seconds of both, and their ratio, from runs that take turns: the lower quartile of each,
    since what else a machine does can only make a run longer."""
    # 2 GiB at 4 TB/s keep the GPU busy for half a millisecond, and flush its cache.
    ahead = None if device == "cpu" else torch.empty(1 << 29, dtype=torch.float32, device=device)
    for _ in range(3):
        ours()
        theirs()
    times: list[tuple[float, float]] = []
    for i in range(repeats):
        order = (ours, theirs) if i % 2 else (theirs, ours)
        pair = [seconds(work, device, ahead) for work in order]
        times.append((pair[0], pair[1]) if i % 2 else (pair[1], pair[0]))
    a, b = (statistics.quantiles(column)[0] for column in zip(*times, strict=True))
    return a, b, a / b


def host_microseconds(work: Work, *, repeats: int = 300) -> float:
    """What issuing a call costs the host, in µs: the median, the device not waited for."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return statistics.median(times) * 1e6


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
