"""Which architectures of transformers does `gf.watch` see? Every model folder by its own testers.

git clone https://github.com/huggingface/transformers /tmp/transformers
python benchmarks/scan_architectures.py --tests /tmp/transformers/tests --results scan.jsonl
"""

import argparse
import contextlib
import gc
import json
import os
import re
import resource
import sys
import time
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
PAGE = Path(__file__).parents[1] / "docs" / "watched-architectures.md"
MEMORY = 12 << 30
SECONDS = 180


def folders() -> list[str]:
    """The folders of the installed transformers that hold a model."""
    import transformers

    models = Path(transformers.__file__).parent / "models"
    return sorted({path.parent.name for path in models.glob("*/modeling_*.py")})


def scan(names: list[str], tests: Path, results: Path, jobs: int) -> None:
    """Each folder in a process of its own, forked from this one: imports are paid for once."""
    sys.path.insert(0, str(tests.parent))
    import transformers

    import scanned_model

    transformers.logging.set_verbosity_error()
    scanned_model.leave_out_pipelines()
    scanned_model.import_test("tests.test_modeling_common")
    for name in ("causal_lm_tester", "vlm_tester", "alm_tester"):
        with contextlib.suppress(ImportError):
            scanned_model.import_test(f"tests.{name}")
    gc.freeze()  # what is shared with the children stays shared
    running: dict[int, tuple[str, float]] = {}
    waiting = list(names)
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            pid = os.fork()
            if pid == 0:
                _child(name, tests, _part(results, name))
            running[pid] = name, time.monotonic()
        pid, code = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(0.1)
            continue
        name, start = running.pop(pid)
        part = _part(results, name)
        found = part.read_text() if part.exists() else ""
        if code:
            why = f"it took more than {SECONDS} s of the processor, or {MEMORY >> 30} GiB"
            found += json.dumps({"folder": name, "status": "limit", "reason": why}) + "\n"
        with results.open("a") as file:
            file.write(found)
        part.unlink(missing_ok=True)
        print(f"{len(waiting):4} {name} {time.monotonic() - start:.1f}s", flush=True)


def _part(results: Path, name: str) -> Path:
    return results.with_suffix(f".{name}.part")


def _child(name: str, tests: Path, part: Path) -> None:
    code = 1
    try:
        import warnings

        import torch

        from scanned_model import records

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        with part.open("w") as file:
            for each in records(name, tests):
                file.write(json.dumps(each) + "\n")
                file.flush()
        code = 0
    finally:
        os._exit(code)


def version_of(checkout: Path) -> str:
    """What the checkout says of itself."""
    found = re.search(
        r'__version__ = "(.+?)"', (checkout / "src/transformers/__init__.py").read_text()
    )
    return found[1] if found else "an unknown version"


def read_results(results: Path) -> list[dict]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=Path, required=True, help="the tests of transformers")
    parser.add_argument(
        "--results", type=Path, required=True, help="JSON lines; what is there is kept"
    )
    parser.add_argument("--only", nargs="*", help="these folders, and no page")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    done = {record["folder"] for record in read_results(options.results)}
    names = [name for name in options.only or folders() if name not in done]
    scan(names, options.tests, options.results, options.jobs)
    if options.only is None:
        import torch
        import transformers

        from scanned_page import write_page

        versions = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "testers": version_of(options.tests.parent),
        }
        PAGE.write_text(write_page(read_results(options.results), versions))


if __name__ == "__main__":
    main()
