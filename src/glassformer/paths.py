"""Paths given by users, and file names given by files."""

import contextlib
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, GlassformerError


def user_path(name: str | Path, error: type[GlassformerError] = CheckpointError) -> Path:
    """A path as users type it, with ~ expanded; an impossible path raises `error`."""
    shown = repr(str(name)) if len(str(name)) <= 200 else repr(f"{str(name)[:200]}…")
    try:
        path = Path(name).expanduser()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.stat()
    except RuntimeError:  # ~somebody
        raise error(f"{shown} starts with the home folder of a user who does not exist.") from None
    except ValueError:
        raise error(
            f"A path must not contain null characters or lone surrogates: {shown}."
        ) from None
    except OSError as wrong:  # a name of 5,000 letters, or a loop of links
        raise error(f"{shown} cannot be a path: {wrong.strerror}.") from None
    return path


def is_file_name(name: Any) -> bool:
    """Whether this is a plain file name: a file in the same folder, and nowhere else."""
    if not isinstance(name, str) or not 0 < len(name.encode(errors="replace")) < 256:
        return False
    return name != ".." and not {"\0", "\\"} & set(name) and Path(name).name == name


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False also for an impossible path."""
    try:
        return path.is_dir()
    except OSError:
        return False
