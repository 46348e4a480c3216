"""Whether files have changed: by size, time and number on disk, without reading them."""

from pathlib import Path

from glassformer.errors import CheckpointError
from glassformer.models.checkpoints.run_weights import is_run, select_weights

FileVersions = tuple[tuple[str, int, int, int], ...]
_READ = (".safetensors", ".json", ".txt", ".model")  # weights, config and tokenizer of a folder


def read_file_versions(path: Path) -> FileVersions:
    """The versions of the files from which a model or a trace is loaded.

    A training run loads its finished, best or latest weights: another choice is another version.
    A file that is replaced by one of the same size and time has another number (inode).
    """
    found = []
    try:
        source = select_weights(path) if path.is_dir() and is_run(path) else path
        inside = sorted(source.iterdir()) if source.is_dir() else [source]
        for file in inside:
            if file == source or file.suffix in _READ:
                at = file.stat()
                found.append((str(file), at.st_size, at.st_mtime_ns, at.st_ino))
    except (OSError, CheckpointError):  # nothing is saved yet, or it is being replaced right now
        return ()
    return tuple(found)
