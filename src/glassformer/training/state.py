"""The state of a checkpoint besides its tensors: progress, scores and scaler, as JSON."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.storage import read_regular

STATE = "state.json"


@dataclass
class TrainingState:
    """How far a run has come, and its best score."""

    step: int = 0  # optimizer updates so far
    epoch: int = 0
    index: int = 0  # steps so far in this epoch
    best: float | None = None  # best validation score
    stale: int = 0  # evaluations since the best one
    scaler: dict[str, Any] = field(default_factory=dict)  # of float16 gradients
    regular: list[int] = field(default_factory=list)  # steps of the checkpoints to average


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDigest:
    """Size and hash of metrics.jsonl when a checkpoint was written."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointState:
    """The content of state.json."""

    training: TrainingState
    metrics: FileDigest

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def read_state(folder: Path) -> CheckpointState:
    """Read the state of a checkpoint; a CheckpointError says what is wrong with it."""
    path = folder / STATE
    if not path.is_file():
        raise CheckpointError(f"{STATE} is missing.")
    try:
        plain = json.loads(read_regular(path))
        training, metrics = TrainingState(**plain["training"]), FileDigest(**plain["metrics"])
    except OSError as error:
        raise CheckpointError(f"{STATE} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CheckpointError(f"{STATE} is not the state of a run.") from None
    state = CheckpointState(training=training, metrics=metrics)
    wrong = _find_wrong_field(state)
    if wrong:
        raise CheckpointError(f"{STATE} has an impossible value for {wrong}.")
    return state


def _find_wrong_field(state: CheckpointState) -> str | None:
    s, digest = state.training, state.metrics
    counts = {"step": s.step, "epoch": s.epoch, "index": s.index, "stale": s.stale}
    counts["metrics"] = digest.size
    is_best = s.best is None or (_is_number(s.best) and not math.isnan(s.best))
    checks = {
        **{name: _is_count(value) for name, value in counts.items()},
        "best": is_best,
        "scaler": isinstance(s.scaler, dict) and all(map(_is_number, s.scaler.values())),
        "regular": isinstance(s.regular, list) and all(map(_is_count, s.regular)),
        "sha256": isinstance(digest.sha256, str),
    }
    return next((name for name, is_right in checks.items() if not is_right), None)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
