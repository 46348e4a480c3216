"""Start-up: `glassformer --help` beside `python -c "import torch"`, and what importing adds.

    python benchmarks/import_time.py [--repeats 9]
    python benchmarks/import_time.py --first-token

Each repeat runs the commands in turn, so that a busy moment hits all of them. Asked for: help in
at most 0.3 × the time of importing torch, and at most 0.15 s for all public names after torch.
`--first-token` runs whole commands up to the first token that they write: ours, and a script that
does the same with the same weights in transformers, whose token must be the same.
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
PROMPT = "Once upon a time, there was a little"
FIRST = [
    *(sys.executable, "-m", "glassformer", "generate", PROMPT),
    *("--max-new", "1", "--temperature", "0", "--model"),
]
SAVE = """
import sys
import glassformer as gf
gf.save(gf.load("storyteller"), sys.argv[1], layout="llama")
"""
PEER = """
import sys
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
given = tokenizer(sys.argv[2], return_tensors="pt")
written = model.generate(**given, max_new_tokens=1, do_sample=False)
print(tokenizer.decode(written[0], skip_special_tokens=True))
"""


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
    parser.add_argument("--first-token", action="store_true", help="up to the first token")
    wish = parser.parse_args()
    return show_first_token(wish.repeats) if wish.first_token else show_imports(wish.repeats)


def show_first_token(repeats: int) -> int:
    """Whole commands beside `import torch`; 1 if their tokens differ."""
    with tempfile.TemporaryDirectory() as cache:
        folder = f"{cache}/model"
        run([sys.executable, "-c", SAVE, folder], cache)
        commands = {
            "import torch": TORCH,
            "glassformer": [*FIRST, folder],
            "transformers": [sys.executable, "-c", PEER, folder, PROMPT],
        }
        texts = {name: run(command, cache).decode().strip() for name, command in commands.items()}
        if texts["glassformer"] != texts["transformers"]:
            print(f"BREACH: the texts differ: {texts}")
            return 1
        print(f"both write: {texts['glassformer']}")
        times = [{n: seconds(c, cache) for n, c in commands.items()} for _ in range(repeats)]
    for name in commands:
        own = [each[name] for each in times]
        ratios = [each[name] / each["import torch"] for each in times]
        print(
            f"{name}: {statistics.median(own):.2f} s ({min(own):.2f}–{max(own):.2f}), "
            f"{statistics.median(ratios):.2f} × import torch"
        )
    ratio = statistics.median(each["glassformer"] / each["transformers"] for each in times)
    print(f"glassformer / transformers: {ratio:.3f} (median of {repeats} ratios)")
    return 0


def show_imports(repeats: int) -> int:
    """Help, and importing all names; 1 if either takes longer than is asked for."""
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
