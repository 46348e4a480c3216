"""How far somebody is: one JSON file, written whole or not at all."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError
from glassformer.storage import special_kind, write_whole

VERSION = 1
FORMAT = "glassformer practice progress"
# How files of ours begin: those of today, and those from before they named their format.
_BEGINNINGS = (f'{{\n  "format": "{FORMAT}"', f'{{\n  "version": {VERSION},\n  "current": ')
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
            "format": FORMAT,
            "version": VERSION,
            "current": self.current,
            "passed": sorted(self.passed),
            "hints": self.hints,
        }
        write_whole(folder / FILE, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


class NotProgress(ConfigError):
    """A progress.json that somebody else wrote, or that is no file: it stays as it is."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"Progress is kept in {path}, but that is no file of glassformer's. Practise in "
            "another folder with --dir."
        )
        self.path = path


def load(folder: Path) -> tuple[Progress, Path | None]:
    """The progress in a folder, and where a file that could not be read was put aside."""
    path = folder / FILE
    try:
        if special_kind(path) is not None:
            raise NotProgress(path)
        text = path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return Progress(), None
    except OSError:
        raise NotProgress(path) from None  # unreadable: it may be another program's file
    try:
        return _read(json.loads(text)), None
    except (ValueError, RecursionError):
        pass
    if not text.strip():
        return Progress(), None  # an empty file has nothing to lose
    if not any(text.startswith(each) or each.startswith(text) for each in _BEGINNINGS):
        raise NotProgress(path)
    return Progress(), _aside(path)


def _read(data: Any) -> Progress:
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError("another version")
    if data.get("format", FORMAT) != FORMAT:
        raise ValueError("another format")
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
