"""What a worker remembers: models that it has loaded, and the runs that were looked at last.

It is a cache and no more: whatever is forgotten is made again from the request that names it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from glassformer.analysis.traced_text import count_layers, trace_again, trace_text
from glassformer.errors import CheckpointError, ConfigError, TraceError
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.copied_spans import insert_spans
from glassformer.generation.source_text import read_any_source
from glassformer.models import Decoder, Encoder, EncoderDecoder
from glassformer.models.checkpoints import Model, load
from glassformer.tracing import Trace
from glassformer.tracing.interventions import Changes
from glassformer.workbench.file_versions import FileVersions, read_file_versions
from glassformer.workbench.foreign_models import ForeignModel, load_foreign
from glassformer.workbench.jobs import Progress
from glassformer.workbench.references import read_references
from glassformer.workbench.wire.requests import ReadingRequest

_MOST_MODELS = 2
_MOST_RUNS = 8
_SMALL = 1 << 34  # parameters × characters: 1,700 characters for ten million parameters


@dataclass(eq=False, frozen=True)
class Reading:
    """A text on a model, and the trace of it; or a saved trace, whose model is not here."""

    asked: ReadingRequest
    source: Model | ForeignModel | None
    trace: Trace
    changes: Changes | None

    @property
    def model(self) -> Model:
        """The model, which must be one of ours."""
        return _require_ours(self.source, self.asked.model)

    @property
    def gap(self) -> int:
        """The token of a gap that the model fills; −1 where it fills none."""
        if isinstance(self.source, Encoder) and self.source.special.mask is not None:
            return self.source.special.mask
        return self.source.gap if isinstance(self.source, ForeignModel) else -1

    @property
    def continues(self) -> bool:
        """Whether the model predicts what follows the text."""
        if isinstance(self.source, ForeignModel):
            return self.source.continues
        return isinstance(self.source, Decoder)

    @property
    def n_start(self) -> int:
        """How many tokens a translation begins with that nobody reads."""
        return len(self.source.special.start) or 1 if isinstance(self.source, EncoderDecoder) else 1

    def counting(self, progress: Progress) -> AbstractContextManager[None]:
        """While it is open, each layer of the model that runs is reported, if the model is ours."""
        if not isinstance(self.source, Model):
            return nullcontext()
        return count_layers(self.source, progress)

    def decode(self, tokens: list[int]) -> str:
        """What the model has written."""
        if isinstance(self.source, ForeignModel):
            return self.source.tokenizer.decode(tokens, skip_special_tokens=True)
        if isinstance(self.source, EncoderDecoder) and self.asked.target is None:
            source = read_any_source(self.source, self.asked.text, self.asked.to)
            return insert_spans(self.source, source, tokens)
        return tokenizer_of(self.model).decode(tokens)


class Memory:
    """Models and readings, each made when it is first asked for."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._models: OrderedDict[str, Model | ForeignModel] = OrderedDict()
        self._readings: OrderedDict[ReadingRequest, Reading] = OrderedDict()
        self._versions: dict[str, FileVersions] = {}

    def locate(self, paths: dict[str, str]) -> None:
        """Where the models and traces are that a request names, other than the included.

        Whatever was made from files that have changed since is forgotten: a training run saves
        new weights under the same name.
        """
        self._paths |= paths
        for name, path in paths.items():
            version = read_file_versions(Path(path))
            if self._versions.get(name, version) != version:
                self._forget(name)
            self._versions[name] = version

    def _forget(self, name: str) -> None:
        self._models.pop(name, None)
        for asked in [each for each in self._readings if each.model == name]:
            del self._readings[asked]

    def path(self, name: str) -> Path | None:
        """Where the server has found what it calls so; None for an included model."""
        found = self._paths.get(name)
        return None if found is None else Path(found)

    def model(self, name: str) -> Model:
        """A model of ours."""
        if self._find_trace(name) is not None:
            return _require_ours(None, name)
        return _require_ours(self._source(name), name)

    def reading(self, asked: ReadingRequest, progress: Progress) -> Reading:
        """The run of a request with its residual stream, whatever else the request asks for."""
        return self._recall_reading(asked, progress, residual=True)

    def glance(self, asked: ReadingRequest, progress: Progress) -> Reading:
        """The run of a request, where its attention is all that is shown.

        A translator's residual stream is recorded when somebody asks for it: a third of the time
        until the first picture.
        """
        return self._recall_reading(asked, progress, residual=False)

    def _recall_reading(
        self, asked: ReadingRequest, progress: Progress, *, residual: bool
    ) -> Reading:
        key = ReadingRequest(**{name: getattr(asked, name) for name in ReadingRequest.model_fields})
        kept = self._readings.get(key)
        if (
            residual
            and kept is not None
            and isinstance(kept.source, EncoderDecoder)
            and not kept.trace.run.streams
        ):
            again = trace_again(kept.source, kept.trace, changes=kept.changes, progress=progress)
            self._readings[key] = replace(kept, trace=again)
        return _recall(self._readings, key, lambda: self._read(key, progress, residual), _MOST_RUNS)

    def unchanged(self, asked: ReadingRequest, progress: Progress) -> Reading:
        """The run of a request without its interventions."""
        return self.reading(asked.model_copy(update={"change": None, "second": None}), progress)

    def changes(self, asked: ReadingRequest, progress: Progress) -> Changes | None:
        """The interventions of a request; None where there are none."""
        if asked.change is None:
            return None

        def read_second() -> Trace:
            if asked.second is None:
                raise ConfigError(
                    "$second and $direction need a second sentence, and none was given."
                )
            other = {"text": asked.second, "target": None, "change": None, "second": None}
            return self.reading(asked.model_copy(update=other), progress).trace

        return read_references(
            asked.change, lambda: self.unchanged(asked, progress).trace, read_second
        )

    def _read(self, asked: ReadingRequest, progress: Progress, residual: bool) -> Reading:
        saved = self._find_trace(asked.model)
        if saved is not None:
            if asked.change is not None:
                raise ConfigError(f"{asked.model} is a saved trace, and its model is not here.")
            return Reading(asked, None, _open_trace(saved), None)
        source = self._source(asked.model)
        changes = self.changes(asked, progress)
        if isinstance(source, ForeignModel):
            trace = source.trace(asked.text, asked.target, changes=changes)
        else:
            with on_one_thread() if _is_small(source, asked.text) else nullcontext():
                trace = trace_text(
                    source,
                    asked.text,
                    asked.target,
                    asked.to,
                    residual=residual or not isinstance(source, EncoderDecoder),
                    changes=changes,
                    progress=progress,
                )
        if not len(trace):
            raise TraceError(f"Nothing could be recorded: {'; '.join(trace.run.refusals.values())}")
        return Reading(asked, source, trace, changes)

    def _source(self, name: str) -> Model | ForeignModel:
        path = self._paths.get(name, name)
        return _recall(self._models, name, lambda: _load(path, name), _MOST_MODELS)

    def _find_trace(self, name: str) -> Path | None:
        path = Path(self._paths[name]) if name in self._paths else None
        return path if path is not None and path.suffix != ".gguf" and path.is_file() else None


def _require_ours(source: Any, name: str) -> Model:
    if isinstance(source, Model):
        return source
    if source is None:
        raise ConfigError(f"This needs the model itself; {name} is a saved trace.")
    raise ConfigError(
        f"This is shown of glassformer's own models alone; {name} runs in transformers."
    )


def _is_small(model: Model, text: str) -> bool:
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    return n_parameters * len(text) < _SMALL


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Short products gain nothing from a second thread, which takes a core from the browser."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def _open_trace(path: Path) -> Trace:
    found = Trace.load(path)
    runs = [run for run in found.runs if run.sites]
    if not runs:
        raise TraceError(f"{path.name} holds no attention to look at.")
    return Trace(runs, found.model)


def _load(path: str, name: str) -> Model | ForeignModel:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = load(path, dtype=torch.float32 if device == "cpu" else None, device=device)
    except CheckpointError as error:
        if not Path(path, "config.json").is_file() or "model_type must be" not in str(error):
            raise
        return load_foreign(Path(path), error)
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
