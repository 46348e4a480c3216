"""How far somebody is: one JSON file, written whole or not at all."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer.storage import write_whole

VERSION = 1
FILE = "progress.json"


@dataclass(kw_only=True, slots=True)
class Progress:
    """Which exercises are passed, which hints were read, and where one is."""

    current: str | None = None
    passed: set[str] = field(default_factory=set)
    hints: dict[str, int] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write the file beside the old one and put it in its place: a crash leaves one of them."""
        data = {
            "version": VERSION,
            "current": self.current,
            "passed": sorted(self.passed),
            "hints": self.hints,
        }
        write_whole(folder / FILE, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def load(folder: Path) -> tuple[Progress, Path | None]:
    """The progress in a folder, and where a file that could not be read was put aside."""
    path = folder / FILE
    try:
        return _read(json.loads(path.read_text("utf-8"))), None
    except FileNotFoundError:
        return Progress(), None
    except (ValueError, OSError):
        return Progress(), _aside(path)


def _read(data: Any) -> Progress:
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError("another version")
    current, passed, hints = data.get("current"), data.get("passed"), data.get("hints")
    if not isinstance(passed, list) or not isinstance(hints, dict):
        raise ValueError("damaged")
    names = [*passed, *hints, *([] if current is None else [current])]
    counts = list(hints.values())
    if not all(isinstance(name, str) for name in names):
        raise ValueError("damaged")
    if not all(isinstance(n, int) and n >= 0 for n in counts):
        raise ValueError("damaged")
    return Progress(current=current, passed=set(passed), hints=hints)


def _aside(path: Path) -> Path:
    n = 1
    while (kept := path.with_name(f"progress.kept-{n}.json")).exists():
        n += 1
    try:
        path.replace(kept)
    except OSError:
        return path  # a folder that cannot be written to keeps it where it is
    return kept
