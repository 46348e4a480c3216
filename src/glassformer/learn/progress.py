"""What a learner has read and answered: one JSON file, written whole, never thrown away."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from glassformer.errors import ConfigError, DataError, GlassformerError
from glassformer.learn.repetition import Card
from glassformer.storage import whole_file

VERSION = 1


class Unsaved(DataError):
    """Progress that could not be written: where, and why."""

    def __init__(self, path: Path, error: GlassformerError) -> None:
        super().__init__(
            f"Progress must be kept in a file that can be written; {error} Use --progress FILE."
        )
        self.path = path
        self.reason = getattr(error.__context__, "strerror", None) or str(error)


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

    A damaged file, or one of another version, is kept beside it under another name.
    """
    if path.is_dir():
        raise ConfigError(
            f"Progress must be kept in a file; {path} is a folder. Name a file in it."
        )
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Progress(path)
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise DataError(
            f"Progress must be in a file that can be read; {path}: {error.strerror}. "
            "Use --progress FILE."
        ) from None
    try:
        plain = json.loads(text)
        version = plain["version"]
        if version != VERSION:
            return Progress(path, kept_aside=_aside(path, "other-version"))
        cards = {str(name): Card.from_dict(card) for name, card in plain["cards"].items()}
        read = {
            str(name): date.fromisoformat(day).isoformat() for name, day in plain["read"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Progress(path, kept_aside=_aside(path, "damaged"))
    return Progress(path, read, cards)


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
    """Give a file another name that nothing has yet."""
    n = 1
    while (aside := path.with_name(f"{path.name}.{reason}-{n}")).exists():
        n += 1
    try:
        return path.rename(aside)
    except OSError as error:
        raise DataError(
            f"Progress that cannot be used must be put aside; {path}: {error.strerror}. "
            "Use --progress FILE."
        ) from None
