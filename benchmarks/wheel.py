"""The wheel outside the clone: every command of the help runs, or names the extra to install.

    python benchmarks/wheel.py [--keep]

Builds the wheel, installs it with nothing but its own dependencies (under constraints.txt) into a
fresh environment in a temporary folder, and runs every command there; then the README's code.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# One line or more for each command; "{extra}" marks those that may ask for an extra instead.
LINES = {
    "demo": ["demo", "demo --json"],
    "serve": ["serve --no-browser {extra}"],
    "steps": ["steps", "steps 'The cat sat.'"],
    "look": [
        "look 'The cat sat on the mat.' --html page.html --trace cat.trace",
        "look 'The cat sat.' --png cat.png {extra}",
    ],
    "compare": ["compare cat.trace cat.trace", "compare cat.trace cat.trace --bisect"],
    "mask": ["mask 'causal & window(3)'"],
    "models": ["models", "models writer"],
    "shapes": ["shapes translator", "shapes --dim 96 --heads 6 --layers 2"],
    "learn": [
        "learn",
        "learn why",
        "learn --plan weekend",
        "learn --book book.html",
        "learn why --notebook why.ipynb",
        "learn why --notebook why.py",
    ],
    "quiz": ["quiz --list"],
    "generate": ["generate 'It was' --max-new 8"],
    "translate": ["translate 'The cat sat.' --to zh"],
    "train": ["train --source a.en --target a.fr --out run --set until.steps=2 {extra}"],
    "evaluate": [
        "evaluate --model translator --to fr --source a.en --target a.fr --beams 1 {extra}"
    ],
    "fill": ["fill 'The king sat upon his [MASK].'"],
    "lens": [
        "lens 'And God said unto'",
        "lens --train book.txt --out book.lens --steps 1",
        "lens 'And God said unto' --lens book.lens",
    ],
    "why": ["why 'And God said unto'"],
    "change": ["change 'And God said unto' --change 'skip(decoder.1)' --tokens 2"],
    "sweep": ["sweep 'The old man sat' 'The old men sat' --tokens ' down' ' up' --method both"],
    "heads": ["heads --model writer"],
    "embed": ["embed 'The king sat.' 'The queen sat.'"],
    "convert": ["convert writer copied", "convert writer copied.gguf --layout gguf {extra}"],
    "lab": ["lab", "lab scale --size quick"],
    "practice": [
        "practice list",
        "practice run dot_product_scores {may fail}",
        "practice capstone",
        "practice class create course",
        "practice new centred --class course",
        "practice class show course --json",
        "practice {extra}",
    ],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    keep = parser.parse_args().keep
    folder = Path(tempfile.mkdtemp(prefix="glassformer-wheel-"))
    try:
        return check(folder)
    finally:
        if not keep:
            shutil.rmtree(folder)


def check(folder: Path) -> int:
    """Whether everything runs in a fresh environment in this folder."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", ROOT]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", ROOT / "constraints.txt", wheel], check=True)
    place = folder / "work"
    place.mkdir()
    for suffix, line in (("en", "The cat sat."), ("fr", "Le chat est assis.")):
        (place / f"a.{suffix}").write_text(f"{line}\n" * 40, "utf-8")
    (place / "book.txt").write_text("And God said unto Moses, Go down.\n" * 80, "utf-8")
    command = str(folder / "venv/bin/glassformer")
    listed = run([command, "--help"], place).stdout
    commands = re.findall(r"^  (\w+) ", listed.split("Commands")[1].split("Options")[0], re.M)
    failures = [f"{each}: no line tries it" for each in commands if each not in LINES]
    for each in commands:
        failures += run_lines(command, LINES.get(each, []), place)
    failures += run_readme(python, place)
    print(*failures, sep="\n")
    print(f"{len(commands)} commands, {len(failures)} failures")
    return 1 if failures else 0


def run_lines(command: str, lines: list[str], place: Path) -> list[str]:
    """What fails although it should not: a missing extra must be named with its command."""
    failures = []
    for line in lines:
        words, _, mark = line.partition(" {")
        ended = run(f"{command} {words}", place, shell=True)
        said = ended.stderr + ended.stdout
        names_extra = "extra" in mark and "pip install 'glassformer[" in said
        if "Traceback" in said or (ended.returncode and not names_extra and "fail" not in mark):
            failures.append(
                f"glassformer {words}: {ended.returncode} {ended.stderr.strip()[-300:]}"
            )
        print("." if ended.returncode == 0 else "+", f"glassformer {words}", flush=True)
    return failures


def run_readme(python: Path, place: Path) -> list[str]:
    """The README's Python, with exactly what the README says to install."""
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    failures = []
    for block in blocks:
        ended = run([str(python), "-c", block], place)
        if ended.returncode:
            failures.append(f"README: {ended.stderr.strip()[-300:]}")
    return failures


def run(command, place: Path, shell: bool = False) -> subprocess.CompletedProcess:
    """Run without our sources on the path, so that only the wheel can be imported."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {"HOME": str(place), "XDG_DATA_HOME": str(place), "COLUMNS": "100"}
    return subprocess.run(
        command,
        cwd=place,
        env=environ,
        shell=shell,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
