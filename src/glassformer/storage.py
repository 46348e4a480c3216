"""Files and folders that are written whole or not at all."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError

from glassformer.errors import CheckpointError, GlassformerError


@contextlib.contextmanager
def whole_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """A new folder beside `folder` to write into; it takes that name once all is on the disk.

    A folder that is there already is replaced only if `overwrite`, and only by a finished one:
    until then it stays as it is.
    """
    folder = folder.absolute()
    if folder.exists() and not overwrite:
        raise CheckpointError(
            f"{folder} exists already. Save under another name, or with overwrite=True."
        )
    if folder.exists() and not _is_checkpoint(folder):
        raise CheckpointError(
            f"overwrite=True replaces a saved model; {folder} holds something else. "
            "Save under another name."
        )
    unfinished: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        unfinished.chmod(0o755)  # mkdtemp makes it private
        yield unfinished
        for path in unfinished.rglob("*"):
            path.chmod(0o644)  # some writers make their files private
            to_disk(path)
        to_disk(unfinished)
        _replace(unfinished, folder)
        to_disk(folder.parent)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{folder} could not be written: {error}.") from None
    finally:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)


@contextlib.contextmanager
def whole_file(path: Path, error: type[GlassformerError] = CheckpointError) -> Iterator[Path]:
    """A file beside `path` to write into; it takes that name once all is on the disk.

    What goes wrong is told as an `error`.
    """
    path = path.absolute()
    unfinished: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        unfinished = Path(name)
        yield unfinished
        unfinished.chmod(0o644)  # mkstemp makes it private
        to_disk(unfinished)
        unfinished.replace(path)
        to_disk(path.parent)
    except (OSError, SafetensorError) as wrong:
        why = (wrong.strerror or wrong) if isinstance(wrong, OSError) else wrong
        raise error(f"{path} could not be written: {why}.") from None
    finally:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a small text beside its place and put it there: a crash leaves all of it, or nothing.

    OSError comes as it is, for those who tell it in the reader's language.
    """
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, "utf-8")
    new.replace(path)


def sha256(path: Path) -> str:
    """The hash of a file, as hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None


def _is_checkpoint(folder: Path) -> bool:
    return folder.is_dir() and ((folder / "config.json").is_file() or not any(folder.iterdir()))


def _replace(new: Path, folder: Path) -> None:
    if not folder.exists():
        new.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent)) / folder.name
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    finally:
        shutil.rmtree(old.parent, ignore_errors=True)


def to_disk(path: Path) -> None:
    """Wait until a file or a folder is on the disk, not on its way there."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
