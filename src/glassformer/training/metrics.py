"""The metrics of a run: JSON Lines, and TensorBoard if the recipe asks for it."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, ConfigError
from glassformer.storage import atomic_file, read_regular, sha256, special_kind, sync_to_disk
from glassformer.training.state import FileDigest

FILE = "metrics.jsonl"


class Metrics:
    """Appends to metrics.jsonl; a resumed run first drops what is newer than its checkpoint.

    ::

        {"step": 50, "epoch": 1, "loss": 7.31, "lr": 0.000125, "norm": 1.9, "tokens_per_s": 81000}
        {"step": 50, "epoch": 1, "valid_loss": 6.98, "valid_perplexity": 1075.1}

    `digest` is that of the file when the checkpoint was written. If the file does not match it, the
    readable lines are kept, and `problem` says what happened.
    """

    def __init__(
        self,
        folder: Path,
        *,
        step: int,
        digest: FileDigest | None = None,
        tensorboard: bool = False,
    ) -> None:
        self.path = folder / FILE
        kept, self.problem = _read_kept(self.path, step, digest)
        write_lines(self.path, kept)
        self._last = _kind(kept[-1]) if kept else None
        self.board = _open_tensorboard(folder) if tensorboard else None

    def add(self, **values: Any) -> None:
        """Append a line, and send its numbers to TensorBoard.

        A measurement repeated at the same step replaces the first.
        """
        if _kind(values) == self._last:
            self._drop_last()
        self._last = _kind(values)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_format_line(values))
        if self.board is not None:
            for name, value in values.items():
                if name != "step" and isinstance(value, int | float):
                    self.board.add_scalar(name, value, values["step"])

    def digest(self) -> FileDigest:
        """Size and hash of the file as it is now."""
        sync_to_disk(self.path)
        return FileDigest(size=self.path.stat().st_size, sha256=sha256(self.path))

    def _drop_last(self) -> None:
        data = read_regular(self.path)
        os.truncate(self.path, data.rfind(b"\n", 0, -1) + 1)


def read_lines(data: bytes, step: int) -> tuple[list[dict[str, Any]], int]:
    """Read the lines up to a step, each measurement once, and count the unreadable ones.

    Half a line at the end, which a killed process may leave, does not count.
    """
    kept: list[dict[str, Any]] = []
    seen, n_bad = set(), 0
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        values = _parse_line(line)
        if values is None:
            n_bad += 1
            continue
        at = values["step"]
        if at > step or _kind(values) in seen or (kept and at < kept[-1]["step"]):
            continue
        seen.add(_kind(values))
        kept.append(values)
    return kept, n_bad


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write a file of these lines atomically."""
    with atomic_file(path) as new:
        new.write_text("".join(map(_format_line, lines)), encoding="utf-8")


def _read_kept(
    path: Path, step: int, digest: FileDigest | None
) -> tuple[list[dict[str, Any]], str]:
    kind = special_kind(path)
    if kind is not None:
        raise CheckpointError(f"{path} must be a regular file; it is {kind}. Move it elsewhere.")
    try:
        data = read_regular(path) if path.exists() else b""
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    kept, n_bad = read_lines(data, step)
    head = data[: digest.size] if digest is not None else b""
    if digest is None or (
        len(head) == digest.size and hashlib.sha256(head).hexdigest() == digest.sha256 and not n_bad
    ):
        return kept, ""
    what = "is damaged" if path.exists() else "is missing"
    return kept, f"{FILE} {what}: {len(kept)} lines up to step {step} were kept."


def _parse_line(line: bytes) -> dict[str, Any] | None:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    step = values.get("step") if isinstance(values, dict) else None
    return values if isinstance(step, int) and not isinstance(step, bool) else None


def _kind(values: dict[str, Any]) -> tuple[Any, ...]:
    return values["step"], *sorted(values)


def _format_line(values: dict[str, Any]) -> str:
    return json.dumps(values) + "\n"


def _open_tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError(
            "show.tensorboard needs the package tensorboard, which is not installed. "
            "Run pip install tensorboard, or leave the setting out."
        ) from None
    return SummaryWriter(str(folder / "tensorboard"))
