"""Start-up: `glassformer --help` beside `python -c "import torch"`, and what importing adds.

    python benchmarks/import_time.py [--repeats 9]

Each repeat runs the commands in turn, so that a busy moment hits all of them. Asked for: help in
at most 0.3 × the time of importing torch, and at most 0.15 s for all public names after torch.
"""

import argparse
import statistics
import subprocess
import sys
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


def seconds(command: list[str]) -> float:
    """How long a process takes, from its start to its end."""
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    seconds(TORCH), seconds(HELP)  # files are read from the disk once
    pairs, names = [], []
    for _ in range(repeats):
        pairs.append((seconds(TORCH), seconds(HELP)))
        names.append(float(subprocess.run(NAMES, capture_output=True, check=True).stdout))
    torch, shown = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    added = statistics.median(names)
    print(f"import torch: {torch:.3f} s, glassformer --help: {shown:.3f} s (medians of {repeats})")
    print(f"ratio: {ratio:.3f} (median of {repeats} ratios; at most {MOST_HELP})")
    print(f"all public names after import torch: {added:.3f} s (at most {MOST_NAMES} s)")
    return 0 if ratio <= MOST_HELP and added <= MOST_NAMES else 1


if __name__ == "__main__":
    sys.exit(main())
