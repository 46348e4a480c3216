"""What a run measured: JSON lines, one whole line per moment, and TensorBoard where it is there."""

import json
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError
from glassformer.storage import whole_file


class Metrics:
    """Appends to metrics.jsonl; a resumed run first forgets what came after its checkpoint.

    ::

        {"step": 50, "epoch": 1, "loss": 7.31, "lr": 0.000125, "norm": 1.9, "tokens_per_s": 81000}
        {"step": 50, "epoch": 1, "valid_loss": 6.98, "valid_perplexity": 1075.1}
    """

    def __init__(self, folder: Path, *, step: int, tensorboard: bool = False) -> None:
        self.path = folder / "metrics.jsonl"
        self.board = _board(folder) if tensorboard else None
        kept = [line for line in self._lines() if line["step"] <= step]
        with whole_file(self.path) as new:
            new.write_text("".join(_written(line) for line in kept), encoding="utf-8")

    def add(self, **values: Any) -> None:
        """One line; TensorBoard gets the numbers in it."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_written(values))
        if self.board is not None:
            for name, value in values.items():
                if name != "step" and isinstance(value, int | float):
                    self.board.add_scalar(name, value, values["step"])

    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.is_file():
            return []
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a killed run may have left half a line
        return [json.loads(line) for line in whole.splitlines()]


def _written(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False) + "\n"


def _board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError(
            "show.tensorboard must have the package tensorboard; it is not installed. "
            "Run pip install tensorboard, or leave the setting out."
        ) from None
    return SummaryWriter(str(folder / "tensorboard"))
