"""The Atlas on long texts: how long its overview and its finest tiles take, and how much memory.

python benchmarks/workbench_atlas.py                     16,384 tokens, then 131,072
python benchmarks/workbench_atlas.py --lengths 16384     one of them
python benchmarks/workbench_atlas.py --whole             also the whole overview of the longest

Random operands of one layer, 2 heads of 64, causal, saved as a trace, opened by a real server and
asked over HTTP, as the page asks: the times hold the queue, JSON and base64. Tiles lie at random
places under the diagonal. Of texts over 32,768 tokens, the first parts of the overview are timed
and the rest estimated by its share of the work, unless --whole is given. `worker` is the peak
resident memory of the worker process, which holds PyTorch and the trace. On a machine that others
use, the CPU time of the worker says more than the clock; both cores share it.
"""

import argparse
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import glassformer as gf
from glassformer.tracing import Run, Site, Trace, TracedText

TILES = 25
PARTS = 6  # of the overview, where it is estimated
LONG = 32_768


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[16_384, 131_072])
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--whole", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for length in args.lengths:
            path = Path(folder) / f"{length}.trace"
            make_trace(length, args.heads, args.dim).save(path)
            print(f"\n{length:,} tokens, a trace of {path.stat().st_size / 2**20:,.0f} MiB")
            measure(path, length, is_whole=args.whole or length <= LONG)
            path.unlink()
    return 0


def make_trace(length: int, heads: int, dim: int) -> Trace:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, heads, length, dim).unbind(0)
    site = Site(name="decoder.0.self", q=2 * q, k=k, v=v, mask=gf.Causal())
    words = TracedText(torch.arange(length)[None], [[f"t{i}" for i in range(length)]])
    return Trace([Run({site.name: site}, {"tokens": words})])


def measure(path: Path, length: int, *, is_whole: bool) -> None:
    command = [sys.executable, "-m", "glassformer", "serve", str(path)]
    options = ["--port", "0", "--no-browser", "--workers", "1"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if "#token=" in line)
            host, token = line.split("http://")[1].strip().split("/#token=")
            ask_all(host, token, path.name, length, server.pid, is_whole=is_whole)
        finally:
            server.terminate()


def ask_all(host: str, token: str, name: str, length: int, process: int, *, is_whole: bool) -> None:
    def ask(job: str, **extra: Any) -> Any:
        line = http.client.HTTPConnection(host, timeout=3600)
        asked = {"model": name, "text": "", "site": 0, "head": 0, **extra}
        headers = {"Content-Type": "application/json", "X-Glassformer-Token": token}
        line.request("POST", f"/api/atlas/{job}", json.dumps(asked), headers)
        answer = line.getresponse()
        found = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(found["error"])
        return found

    spent, shape = timed(lambda: ask("open"))
    print(f"{'open (the trace is read)':<52} {spent:10.2f} s")
    tiles = finest_tiles(length)
    print_tiles(ask, tiles[:5], "finest tile before any survey")
    print_overview(ask, length, is_whole, process)
    if not is_whole:
        print_tiles(ask, tiles, "finest tile, rows surveyed for it")
    print_tiles(ask, tiles, "finest tile, rows surveyed")
    for level in range(1, shape["top_level"] + 1):
        if not is_whole and level >= shape["middle_level"]:
            break
        if not is_whole and (256 << level) * length > 1 << 28:
            break
        print_tiles(ask, [{"row": 0, "col": 0}] * 3, f"tile of level {level}", level)
    queries = [length - 1 - 97 * i for i in range(5)]
    spent = [timed(lambda q=q: ask("cell", query=q, key=q // 2))[0] for q in queries]
    print(f"{'cell with its row, median of 5':<52} {median(spent):10.0f} ms")
    spent = [timed(lambda: ask("find", axis="key", sought=f"t{length - 7}"))[0] for _ in range(3)]
    print(f"{'find a token, median of 3':<52} {median(spent):10.0f} ms")
    print(f"{'worker, peak resident memory':<52} {worker_memory(process):10.0f} MiB")


def print_overview(ask: Callable[..., Any], length: int, is_whole: bool, server: int) -> None:
    """Part by part, as the page asks."""
    start, parts, share, before = 0, [], 0.0, worker_time(server)
    while start < length and (is_whole or len(parts) < PARTS):
        spent, found = timed(lambda start=start: ask("survey", start=start))
        parts.append(spent)
        start, share = found["stop"], found["share"]
    total, worked = sum(parts), worker_time(server) - before
    print(f"{'overview, CPU time of the worker so far':<52} {worked:10.2f} s")
    if start < length:
        print(f"{f'overview, {PARTS} parts ({100 * share:.2f} % of the work)':<52} {total:10.2f} s")
        total /= share
        print(f"{'overview, all of it at that rate (estimated)':<52} {total:10.0f} s")
    else:
        print(f"{f'overview in {len(parts)} parts':<52} {total:10.2f} s")
    print(f"{'longest part: how long a tile waits at most':<52} {max(parts):10.2f} s")


def print_tiles(
    ask: Callable[..., Any], tiles: list[dict[str, int]], what: str, level: int = 0
) -> None:
    spent = [timed(lambda at=at: ask("tile", level=level, **at))[0] for at in tiles]
    what = f"{what}, median of {len(tiles)}"
    print(f"{what:<52} {median(spent):10.0f} ms (slowest {1000 * max(spent):.0f})")


def finest_tiles(length: int) -> list[dict[str, int]]:
    chosen = random.Random(0)
    rows = [chosen.randrange(length // 256) for _ in range(TILES)]
    return [{"row": row, "col": chosen.randrange(row + 1)} for row in rows]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def median(seconds: list[float]) -> float:
    return 1000 * statistics.median(seconds)


def worker_time(server: int) -> float:
    """Seconds that the workers have computed, whatever else the machine does."""
    spent = 0
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()
        spent += int(fields[11]) + int(fields[12])
    return spent / os.sysconf("SC_CLK_TCK")


def worker_memory(server: int) -> float:
    """MiB of the server's largest process at its peak: that of the worker."""
    sizes = [0]
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        status = Path(f"/proc/{child}/status").read_text()
        sizes += [int(n) for n in re.findall(r"VmHWM:\s+(\d+) kB", status)]
    return max(sizes) / 1024


if __name__ == "__main__":
    sys.exit(main())
