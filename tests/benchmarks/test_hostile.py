"""A small cut of benchmarks/hostile.py, and proof that it can fail."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ENVIRON = {**os.environ, "PYTHONPATH": f"{BENCHMARKS.parent / 'src'}:{BENCHMARKS}"}
pytestmark = pytest.mark.plain  # the processes that it starts have no type hook
pytest.importorskip("gguf")
pytest.importorskip("sentencepiece")


def test_no_case_is_a_breach() -> None:
    words = [sys.executable, str(BENCHMARKS / "hostile.py"), "--cases", "40", "--jobs", "1"]
    done = subprocess.run(
        [*words, "--seed", "1"], env=ENVIRON, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 cases in" in done.stdout and ", 0 breaches;" in done.stdout


@pytest.mark.parametrize("only", ["tokens", "run,", "own", "trace"])
def test_special_files_are_refused(only: str) -> None:
    """A pipe, a device, a folder or a link in the place of every file: nothing waits or fills."""
    words = [sys.executable, str(BENCHMARKS / "hostile.py"), "--specials", "--jobs", "1"]
    done = subprocess.run(
        [*words, "--only", only], env=ENVIRON, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 breaches;" in done.stdout


PROOF = """
import json
from pathlib import Path
import glassformer as gf
import hostile
from hostile_subjects import SUBJECTS, Subject

def make(folder):
    (folder / "a.bin").write_bytes(b"abc")

def load(action):
    def read(folder):
        if (folder / "a.bin").exists() and (folder / "a.bin").read_bytes() == b"abc":
            return "abc"  # the undamaged one
        return action(folder)
    return read

def refuse(folder):
    raise gf.GlassformerError("no")

def check(value, expected, n):
    assert value != "wrong"
    return "equal" if value == expected else "other"

ACTIONS = {
    "refused": refuse,
    "other": lambda folder: "another",
    "traceback": lambda folder: {}["missing"],
    "memory": lambda folder: len(bytearray(1 << 31)),
    "crash": lambda folder: __import__("os").abort(),
    "wrong value": lambda folder: "wrong",
    "outside": lambda folder: (folder.parent / "outside" / "secret").write_text("mine"),
}
SUBJECTS.clear()
hostile.damage = lambda files, rng: hostile.Damaged({"a.bin": b"x"}, "x", 1)
for name, action in ACTIONS.items():
    SUBJECTS[name] = Subject(make=make, load=load(action), check=check)
found = {name: hostile.run([0], 1, only=name)[0]["result"] for name in ACTIONS}
codes = {n: hostile.report([{"subject": n, "result": r}], 0) for n, r in found.items()}
print(json.dumps([found, codes]))
"""


def test_every_breach_is_noticed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROOF], env=ENVIRON, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found, codes = json.loads(done.stdout.splitlines()[-1])
    assert found == {name: name for name in found}
    assert codes == {name: int(name not in ("refused", "other")) for name in found}
