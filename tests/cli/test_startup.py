"""What must answer at once: help screens, usage errors, lists and cards do not load torch."""

import json
import subprocess
import sys

from glassformer.cli.app import COMMANDS

NAMES = [command.__name__.rpartition(".")[2] for command in COMMANDS]
# One process for many lines: each says how it ended, and whether torch is loaded by then.
CODE = """
import contextlib, io, json, sys
from glassformer.cli import main
found = {}
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found[line] = [main(line.split()), "torch" in sys.modules]
print(json.dumps(found))
"""


def run_lines(folder, lines):
    """Each line's exit code and whether torch is loaded after it."""
    command = [sys.executable, "-c", CODE, json.dumps(lines)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return {line: tuple(found) for line, found in json.loads(ended.stdout).items()}


def test_every_help_screen(tmp_path):
    lines = ["", "--help", "--version", "--help --lang zh"]
    lines += [f"{name} --help" for name in NAMES]
    lines += [f"practice {name} --help" for name in ("watch", "list", "run", "hint", "reset")]
    assert run_lines(tmp_path, lines) == dict.fromkeys(lines, (0, False))


def test_lists_and_cards(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    lines = ["learn", "learn --json", "quiz --list", "quiz --json", "practice list"]
    lines += ["models writer", "lab", "lab --lang zh"]
    lines += ["learn why", "learn training --lang zh", "learn fast"]  # no numbers from torch
    assert run_lines(tmp_path, lines) == dict.fromkeys(lines, (0, False))


def test_usage_errors(tmp_path):
    lines = ["nonsense", "mask", "mask causal --queries x", "models nonsense"]
    lines += ["shapes --nonsense", "look text --png picture.svg", "learn nonsense"]
    lines += ["practice run nonsense", "--lang de", "lab --size quick"]
    assert run_lines(tmp_path, lines) == dict.fromkeys(lines, (2, False))


def test_a_command_that_computes_loads_it(tmp_path):
    assert run_lines(tmp_path, ["mask causal"]) == {"mask causal": (0, True)}


# Is the collector asleep in the midst of torch's import, and awake at its end?
COLLECTOR = """
import gc, importlib.abc, json, sys
from glassformer.cli import main

during = set()
class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("torch."):
            during.add(gc.isenabled())

sys.meta_path.insert(0, Watch())
n_finders = len(sys.meta_path)
before = main(["mask", "--help"]), sorted(during), gc.isenabled(), len(sys.meta_path) - n_finders
after = main(["mask", "causal"]), sorted(during), gc.isenabled(), len(sys.meta_path) - n_finders
print(json.dumps([before, after, gc.get_freeze_count() > 0]), file=sys.stderr)
"""


def test_torch_is_imported_without_the_garbage_collector(tmp_path):
    command = [sys.executable, "-c", COLLECTOR]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(ended.stderr) == [[0, [], True, 0], [0, [False], True, 0], True]


def test_a_collector_that_was_off_stays_off(tmp_path):
    command = [sys.executable, "-c", f"import gc; gc.disable(){COLLECTOR}"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(ended.stderr) == [[0, [], False, 0], [0, [False], False, 0], True]
