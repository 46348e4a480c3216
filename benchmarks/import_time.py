"""Start-up: `glassformer --help` beside `python -c "import torch"`, and what importing adds.

    python benchmarks/import_time.py [--repeats 9]

Each repeat runs the commands in turn, so that a busy moment hits all of them. Asked for: help in
at most 0.3 × the time of importing torch, and at most 0.15 s for all public names after torch.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

TORCH = [sys.executable, "-c", "import torch"]
HELP = [sys.executable, "-m", "glassformer", "--help"]
NAMES = [
    sys.executable,
    "-c",
    "import time, torch; start = time.perf_counter(); from glassformer import *;"
    "print(time.perf_counter() - start)",
]
MOST_HELP, MOST_NAMES = 0.3, 0.15


def run(command: list[str], cache: str) -> bytes:
    """Run with compiled modules in a folder of our own, as an installed package has them."""
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(command, env=environ, capture_output=True, check=True).stdout


def seconds(command: list[str], cache: str) -> float:
    """How long a process takes, from its start to its end."""
    start = time.perf_counter()
    run(command, cache)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    pairs, names = [], []
    with tempfile.TemporaryDirectory() as cache:
        for command in (TORCH, HELP, NAMES):  # read from the disk and compiled once
            run(command, cache)
        for _ in range(repeats):
            pairs.append((seconds(TORCH, cache), seconds(HELP, cache)))
            names.append(float(run(NAMES, cache)))
    torch, shown = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    added = statistics.median(names)
    print(f"import torch: {torch:.3f} s, glassformer --help: {shown:.3f} s (medians of {repeats})")
    print(f"ratio: {ratio:.3f} (median of {repeats} ratios; at most {MOST_HELP})")
    print(f"all public names after import torch: {added:.3f} s (at most {MOST_NAMES} s)")
    return 0 if ratio <= MOST_HELP and added <= MOST_NAMES else 1


if __name__ == "__main__":
    sys.exit(main())
