"""What a learner has read and answered: one JSON file, written whole, never thrown away."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError, DataError, GlassformerError
from glassformer.school.learn.spaced_repetition import Card
from glassformer.storage import rename_free, special_kind, whole_file

VERSION = 1
FORMAT = "glassformer learning progress"
# How files of ours begin: those of today, and those from before they named their format.
_BEGINNINGS = (f'{{\n "format": "{FORMAT}"', f'{{\n "version": {VERSION},\n "read": {{')


class Unsaved(DataError):
    """Progress that could not be written: where, and why."""

    def __init__(self, path: Path, error: GlassformerError) -> None:
        super().__init__(
            f"Progress must be kept in a file that can be written; {error} Use --progress FILE."
        )
        self.path = path
        self.reason = getattr(error.__context__, "strerror", None) or str(error)


class NotProgress(ConfigError):
    """A path that is no place for progress: a device, a folder, somebody else's file."""

    def __init__(self, path: Path, kind: str | None) -> None:
        is_what = f"is {kind}" if kind else "was not written by glassformer"
        super().__init__(
            f"Progress is kept in a file of its own; {path} {is_what}, and was left as it is. "
            "Choose another with --progress FILE."
        )
        self.path, self.is_special = path, kind is not None


@dataclass
class Progress:
    """Chapters that were read, with the day, and the cards of the questions."""

    path: Path
    read: dict[str, str] = field(default_factory=dict)
    cards: dict[str, Card] = field(default_factory=dict)
    kept_aside: Path | None = None  # an older file that could not be read

    def mark_read(self, chapter: str, today: date) -> None:
        self.read.setdefault(chapter, today.isoformat())

    def save(self) -> None:
        """Onto the disk, whole or not at all."""
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "read": self.read,
            "cards": {name: card.as_dict() for name, card in self.cards.items()},
        }
        try:
            with whole_file(self.path) as unfinished:
                unfinished.write_text(json.dumps(plain, indent=1, ensure_ascii=False), "utf-8")
        except GlassformerError as error:
            raise Unsaved(self.path, error) from None


def load_progress(path: Path) -> Progress:
    """The progress in a file; a new one where there is none, or none that can be read.

    A damaged file, or one of another version, is kept beside it under another name. Only a regular
    file that we wrote is ever renamed or replaced: anything else is refused.
    """
    try:
        kind = special_kind(path)
        if kind is not None:
            raise NotProgress(path, kind)
        path = path.resolve()  # a link to a file of ours stays a link
        text = path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return Progress(path)
    except OSError as error:
        raise DataError(
            f"Progress must be in a file that can be read; {path}: {error.strerror}. "
            "Use --progress FILE."
        ) from None
    plain = _parsed(text)
    try:
        return _read(path, plain)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    if not text.strip():
        return Progress(path)  # an empty file has nothing to lose
    if not _is_ours(path, text, plain):
        raise NotProgress(path, None)
    is_other = plain.get("format") == FORMAT and plain.get("version") != VERSION
    return Progress(path, kept_aside=_aside(path, "other-version" if is_other else "damaged"))


def _parsed(text: str) -> dict[str, Any]:
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _read(path: Path, plain: dict[str, Any]) -> Progress:
    if plain.get("format", FORMAT) != FORMAT or plain["version"] != VERSION:
        raise ValueError(plain["version"])
    cards = {str(name): Card.from_dict(card) for name, card in plain["cards"].items()}
    read = {str(name): date.fromisoformat(day).isoformat() for name, day in plain["read"].items()}
    return Progress(path, read, cards)


def _is_ours(path: Path, text: str, plain: dict[str, Any]) -> bool:
    """Whether a file that cannot be used is one of ours: by what it says, or by its place."""
    begins = any(text.startswith(each) or each.startswith(text) for each in _BEGINNINGS)
    return begins or plain.get("format") == FORMAT or path == default_path().resolve()


def default_path(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where the platform keeps data of its users.

    >>> default_path({"XDG_DATA_HOME": "/data"}, "linux").as_posix()
    '/data/glassformer/learning.json'
    """
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()
    if platform == "win32":
        folder = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:  # XDG Base Directory Specification: a relative path there is to be ignored
        named = environ.get("XDG_DATA_HOME", "")
        folder = Path(named) if named.startswith("/") else home / ".local" / "share"
    return folder / "glassformer" / "learning.json"


def _aside(path: Path, reason: str) -> Path:
    try:
        return rename_free(path, reason)
    except OSError as error:
        raise DataError(
            f"Progress that cannot be used must be put aside; {path}: {error.strerror}. "
            "Use --progress FILE."
        ) from None
