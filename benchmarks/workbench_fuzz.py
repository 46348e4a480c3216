"""Many made-up requests to every job of the workbench: none may end in a 5xx or hang.

    python benchmarks/workbench_fuzz.py [--requests 200]

The tests ask a few of each job (tests/workbench/test_fuzz.py); this asks many.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=200, help="of each job")
    n = parser.parse_args().requests
    command = [sys.executable, "-m", "pytest", "tests/workbench/test_fuzz.py", "-q"]
    environ = {**os.environ, "GLASSFORMER_FUZZ": str(n)}
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
