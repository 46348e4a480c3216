"""Atomic writes: a file or folder is written completely or not at all."""

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError

from glassformer.errors import CheckpointError, GlassformerError

UNFINISHED = ".unfinished"  # suffix of files being written; a killed process leaves them behind
_HEAD = 1 << 16  # bytes at each end that are searched for a mark
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


# The files of a model saved by transformers.
_FOREIGN = re.compile(
    r"(generation_)?config\.json|model.*\.safetensors(\.index\.json)?|(source|target)\.spm"
    r"|(tokenizer|vocab|merges|special_tokens_map|added_tokens|chat_template|spiece)\b.*"
    r"|tokenizer_config\.json|coverage\.json|shortlist\.safetensors"
)


@contextlib.contextmanager
def atomic_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Write a new folder beside `folder`, renamed to it once everything is on disk.

    An existing folder is replaced only with `overwrite`, and stays untouched until the new one is
    complete.
    """
    folder = folder.absolute()
    check_free(folder, overwrite=overwrite)
    stranger = _explain_foreign(folder) if os.path.lexists(folder) else ""
    if stranger:
        raise CheckpointError(
            f"overwrite=True replaces only saved models; {folder} {stranger}. "
            "Save under another name."
        )
    unfinished: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(
            tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=UNFINISHED, dir=folder.parent)
        )
        unfinished.chmod(0o755)  # mkdtemp creates it private
        yield unfinished
        for path in unfinished.rglob("*"):
            path.chmod(0o644)  # some writers create private files
            sync_to_disk(path)
        sync_to_disk(unfinished)
        _replace(unfinished, folder)
        sync_to_disk(folder.parent)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{folder} could not be written: {error}.") from None
    finally:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse a name that something has already, unless it may be replaced."""
    if os.path.lexists(path) and not overwrite:
        raise CheckpointError(
            f"{path.absolute()} exists already. Save under another name, or with overwrite=True."
        )


@contextlib.contextmanager
def atomic_file(
    path: Path, error: type[GlassformerError] = CheckpointError, *, mark: bytes = b""
) -> Iterator[Path]:
    """Write a new file beside `path`, renamed to it once everything is on disk.

    Only regular files are replaced, and with a `mark` only files that have it near their beginning
    or end, so that files of other programs are safe. Every failure is raised as an `error`.
    """
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        with _open_beside(path, mark) as unfinished:
            yield unfinished
    except (OSError, SafetensorError) as wrong:
        why = (wrong.strerror or wrong) if isinstance(wrong, OSError) else wrong
        raise error(f"{path.absolute()} could not be written: {why}.") from None


def write_atomically(path: Path, text: str) -> None:
    """Write a small text file; a crash leaves the old content or the new, never a part.

    Raises OSError, for callers that report it in the user's language.
    """
    with _open_beside(path) as unfinished:
        unfinished.write_text(text, "utf-8")


def special_kind(path: Path) -> str | None:
    """The kind of a path that is neither a regular file nor free, else None; follows links.

    >>> special_kind(Path("/")), special_kind(Path("/no such file"))
    ('a folder', None)
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(mode):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a special file")


@contextlib.contextmanager
def _open_beside(path: Path, mark: bytes = b"") -> Iterator[Path]:
    # A link stays a link; its target is replaced.
    path = Path(os.path.realpath(path)) if path.is_symlink() else path.absolute()
    kind = special_kind(path)
    if kind is not None:
        raise OSError(errno.EEXIST, f"it is {kind}, not a regular file")
    if mark and not _has_mark(path, mark):
        raise OSError(
            errno.EEXIST,
            "it exists and glassformer did not write it; choose another name, or move it away",
        )
    unfinished: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=UNFINISHED, dir=path.parent)
        os.close(handle)
        unfinished = Path(name)
        yield unfinished
        unfinished.chmod(0o644)  # mkstemp creates it private
        sync_to_disk(unfinished)
        unfinished.replace(path)
        sync_to_disk(path.parent)
    finally:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)


def _has_mark(path: Path, mark: bytes) -> bool:
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
            file.seek(max(0, file.seek(0, os.SEEK_END) - _HEAD))
            tail = file.read()  # PDF metadata is at the end
    except (FileNotFoundError, NotADirectoryError):
        return True
    return not head or mark in head or mark in tail


def move_aside(path: Path, reason: str) -> Path:
    """Rename a file or folder to NAME.REASON-1, or the next free number."""
    n = 1
    while os.path.lexists(free := path.with_name(f"{path.name}.{reason}-{n}")):
        n += 1
    return path.rename(free)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading: a named pipe would block, and a device may never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        kind = special_kind(path) or "a special file"
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file")
    return os.fdopen(handle, "rb")


def read_regular(path: Path) -> bytes:
    """Read all bytes of a regular file."""
    with open_regular(path) as file:
        return file.read()


def sha256(path: Path) -> str:
    """The SHA-256 hash of a file, in hexadecimal."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None


def _explain_foreign(folder: Path) -> str:
    """Why a folder is not a saved model, to follow its name in a sentence; "" if it is one."""
    if not folder.is_dir():
        return "is not a folder"
    try:
        entries = list(folder.iterdir())
        if not entries:
            return ""
        described = json.loads(read_regular(folder / "config.json"))
    except (OSError, ValueError, RecursionError):
        return "holds something else"
    if not isinstance(described, dict) or not {"glassformer", "model_type"} & described.keys():
        return "holds something else"
    files = described.get("files")
    own = {"config.json", *(files if isinstance(files, dict) else ())}
    for entry in sorted(entries):
        is_theirs = "glassformer" not in described and _FOREIGN.fullmatch(entry.name)
        if entry.is_dir() or not (entry.name in own or is_theirs):
            return f"also holds {entry.name}"
    return ""


def _replace(new: Path, folder: Path) -> None:
    if not folder.exists():
        new.rename(folder)
        return
    aside = tempfile.mkdtemp(prefix=f".{folder.name}.old.", suffix=UNFINISHED, dir=folder.parent)
    old = Path(aside) / folder.name
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    finally:
        shutil.rmtree(old.parent, ignore_errors=True)


def sync_to_disk(path: Path) -> None:
    """Flush a file or a folder to disk (fsync)."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
