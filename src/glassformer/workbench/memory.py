"""What a worker remembers: models that it has loaded, and the runs that were looked at last.

It is a cache and no more: whatever is forgotten is made again from the request that names it.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from glassformer.analysis.traced_text import trace_text
from glassformer.errors import ConfigError
from glassformer.models.checkpoints import Model, load
from glassformer.tracing import Trace
from glassformer.tracing.interventions import Changes
from glassformer.tracing.interventions.expression import read_changes
from glassformer.workbench.jobs import Progress
from glassformer.workbench.wire.requests import ReadingRequest

_MOST_MODELS = 2
_MOST_RUNS = 8


@dataclass(eq=False, frozen=True)
class Reading:
    """A text on a model, and the trace of it with the residual stream."""

    asked: ReadingRequest
    model: Model
    trace: Trace
    changes: Changes | None


class Memory:
    """Models and readings, each made when it is first asked for."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._models: OrderedDict[str, Model] = OrderedDict()
        self._readings: OrderedDict[ReadingRequest, Reading] = OrderedDict()

    def locate(self, paths: dict[str, str]) -> None:
        """Where the models and traces are that the server has named, other than the included."""
        self._paths |= paths

    def path(self, name: str) -> Path | None:
        """Where the server has found what it calls so; None for an included model."""
        found = self._paths.get(name)
        return None if found is None else Path(found)

    def model(self, name: str) -> Model:
        path = self._paths.get(name, name)
        return _recall(self._models, name, lambda: _load(path), _MOST_MODELS)

    def reading(self, asked: ReadingRequest, progress: Progress) -> Reading:
        """The run of a request, whatever else the request asks for."""
        key = ReadingRequest(**{name: getattr(asked, name) for name in ReadingRequest.model_fields})
        return _recall(self._readings, key, lambda: self._read(key, progress), _MOST_RUNS)

    def _read(self, asked: ReadingRequest, progress: Progress) -> Reading:
        model = self.model(asked.model)
        changes = None if asked.change is None else read_changes(asked.change)
        trace = trace_text(
            model,
            asked.text,
            asked.target,
            asked.to,
            residual=True,
            changes=changes,
            progress=progress,
        )
        return Reading(asked, model, trace, changes)


def _load(name: str) -> Model:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = load(name, dtype=torch.float32 if device == "cpu" else None, device=device)
    if not isinstance(found, Model):
        raise ConfigError(
            f"The workbench shows Transformers; {name!r} is an LSTM without attention."
        )
    return found


def _recall(kept: OrderedDict[Any, Any], key: Any, make: Callable[[], Any], most: int) -> Any:
    """What is kept under a key, made if it is not there; what was asked for longest ago goes."""
    if key not in kept:
        kept[key] = make()
        while len(kept) > most:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]
