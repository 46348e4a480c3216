"""Paths that people type, and names of files that files give."""

import contextlib
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, GlassformerError


def user_path(name: str | Path, error: type[GlassformerError] = CheckpointError) -> Path:
    """A path as people write it, with ~ for a home; one that no file can have is an `error`."""
    shown = repr(str(name)) if len(str(name)) <= 200 else repr(f"{str(name)[:200]}…")
    try:
        path = Path(name).expanduser()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.stat()
    except RuntimeError:  # ~somebody
        raise error(f"{shown} begins with the home of a user that does not exist.") from None
    except ValueError:
        raise error(f"A path must not have null characters or halves of pairs: {shown}.") from None
    except OSError as wrong:  # a name of 5,000 letters, links in a circle
        raise error(f"{shown} cannot be a path: {wrong.strerror}.") from None
    return path


def is_file_name(name: Any) -> bool:
    """Whether a file's own list may name this: a file beside it, and none elsewhere."""
    if not isinstance(name, str) or not 0 < len(name.encode(errors="replace")) < 256:
        return False
    return name != ".." and not {"\0", "\\"} & set(name) and Path(name).name == name


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder; False as well where it can lead nowhere."""
    try:
        return path.is_dir()
    except OSError:
        return False
