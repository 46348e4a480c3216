"""What `import glassformer` adds to `import torch`: at most 0.15 s."""

import statistics
import subprocess
import sys

CODE = (
    "import time, torch; start = time.perf_counter(); import glassformer;"
    "print(time.perf_counter() - start)"
)


def main() -> int:
    runs = [
        float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True).stdout)
        for _ in range(7)
    ]
    median = statistics.median(runs)
    print(f"import glassformer after import torch: {median:.3f} s (median of {len(runs)})")
    return 0 if median <= 0.15 else 1


if __name__ == "__main__":
    sys.exit(main())
