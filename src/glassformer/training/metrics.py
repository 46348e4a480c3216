"""What a run measured: JSON lines, one whole line per moment, and TensorBoard where it is there."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, ConfigError
from glassformer.storage import read_regular, sha256, special_kind, to_disk, whole_file
from glassformer.training.state import Seal

FILE = "metrics.jsonl"


class Metrics:
    """Appends to metrics.jsonl; a resumed run first drops what came after its checkpoint.

    ::

        {"step": 50, "epoch": 1, "loss": 7.31, "lr": 0.000125, "norm": 1.9, "tokens_per_s": 81000}
        {"step": 50, "epoch": 1, "valid_loss": 6.98, "valid_perplexity": 1075.1}

    `seal` is what the checkpoint knows of the file. Where the file is something else, the lines
    that can be read are kept, and `problem` says what happened.
    """

    def __init__(
        self, folder: Path, *, step: int, seal: Seal | None = None, tensorboard: bool = False
    ) -> None:
        self.path = folder / FILE
        kept, self.problem = _restored(self.path, step, seal)
        write_lines(self.path, kept)
        self._last = _kind(kept[-1]) if kept else None
        self.board = _board(folder) if tensorboard else None

    def add(self, **values: Any) -> None:
        """One line; TensorBoard gets the numbers in it.

        The same measurement of the same step, made again, replaces the first.
        """
        if _kind(values) == self._last:
            self._drop_last()
        self._last = _kind(values)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_written(values))
        if self.board is not None:
            for name, value in values.items():
                if name != "step" and isinstance(value, int | float):
                    self.board.add_scalar(name, value, values["step"])

    def seal(self) -> Seal:
        """What the file is now."""
        to_disk(self.path)
        return Seal(size=self.path.stat().st_size, sha256=sha256(self.path))

    def _drop_last(self) -> None:
        data = read_regular(self.path)
        os.truncate(self.path, data.rfind(b"\n", 0, -1) + 1)


def read_lines(data: bytes, step: int) -> tuple[list[dict[str, Any]], int]:
    """The lines up to a step, in order, each measurement once; and how many could not be read.

    A process that was killed may have left half a line at the end, which does not count.
    """
    kept: list[dict[str, Any]] = []
    seen, n_bad = set(), 0
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        values = _parsed(line)
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
    """A file of these lines, whole or not at all."""
    with whole_file(path) as new:
        new.write_text("".join(map(_written, lines)), encoding="utf-8")


def _restored(path: Path, step: int, seal: Seal | None) -> tuple[list[dict[str, Any]], str]:
    kind = special_kind(path)
    if kind is not None:
        raise CheckpointError(f"{path} must be a regular file; it is {kind}. Move it away.")
    try:
        data = read_regular(path) if path.exists() else b""
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    kept, n_bad = read_lines(data, step)
    head = data[: seal.size] if seal is not None else b""
    if seal is None or (
        len(head) == seal.size and hashlib.sha256(head).hexdigest() == seal.sha256 and not n_bad
    ):
        return kept, ""
    what = "is damaged" if path.exists() else "is missing"
    return kept, f"{FILE} {what}: {len(kept)} lines up to step {step} could be kept."


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    step = values.get("step") if isinstance(values, dict) else None
    return values if isinstance(step, int) and not isinstance(step, bool) else None


def _kind(values: dict[str, Any]) -> tuple[Any, ...]:
    return values["step"], *sorted(values)


def _written(values: dict[str, Any]) -> str:
    return json.dumps(values) + "\n"


def _board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError(
            "show.tensorboard needs the package tensorboard, which is not installed. "
            "Run pip install tensorboard, or leave the setting out."
        ) from None
    return SummaryWriter(str(folder / "tensorboard"))
