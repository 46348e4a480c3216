"""Where a run is: what a checkpoint holds beside tensors, and how that is read back."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.storage import read_regular

STATE = "state.json"


@dataclass
class Progress:
    """How far a run has come, and how it has gone."""

    step: int = 0  # updates made
    epoch: int = 0
    index: int = 0  # steps of this epoch made
    best: float | None = None
    stale: int = 0  # evaluations since the best
    scaler: dict[str, Any] = field(default_factory=dict)
    regular: list[int] = field(default_factory=list)  # checkpoints that model/ may be the mean of


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """What metrics.jsonl was when a checkpoint was written: its size and its hash."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """The content of state.json."""

    progress: Progress
    metrics: Seal

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def read_state(folder: Path) -> State:
    """The state in a checkpoint; a CheckpointError says what is wrong with it."""
    path = folder / STATE
    if not path.is_file():
        raise CheckpointError(f"{STATE} is missing.")
    try:
        plain = json.loads(read_regular(path))
        state = State(progress=Progress(**plain["progress"]), metrics=Seal(**plain["metrics"]))
    except OSError as error:
        raise CheckpointError(f"{STATE} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CheckpointError(f"{STATE} is not the state of a run.") from None
    wrong = _wrong_field(state)
    if wrong:
        raise CheckpointError(f"{STATE} has an impossible value for {wrong}.")
    return state


def _wrong_field(state: State) -> str | None:
    p, seal = state.progress, state.metrics
    counts = {"step": p.step, "epoch": p.epoch, "index": p.index, "stale": p.stale}
    counts["metrics"] = seal.size
    is_best = p.best is None or (_is_number(p.best) and not math.isnan(p.best))
    checks = {
        **{name: _is_count(value) for name, value in counts.items()},
        "best": is_best,
        "scaler": isinstance(p.scaler, dict) and all(map(_is_number, p.scaler.values())),
        "regular": isinstance(p.regular, list) and all(map(_is_count, p.regular)),
        "sha256": isinstance(seal.sha256, str),
    }
    return next((name for name, is_right in checks.items() if not is_right), None)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
