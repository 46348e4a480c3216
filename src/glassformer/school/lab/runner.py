"""From the name of an experiment to a report: measured and judged, with nothing left over."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.chart import Bars, Cells, Chart, Panel, Series
from glassformer.school.lab.catalogue import find_experiment
from glassformer.school.lab.experiment import SIZES, Experiment, Numbers, Verdict
from glassformer.school.lab.texts import ExperimentTexts


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperimentReport:
    """The result of one run of an experiment."""

    experiment: Experiment
    size: str
    seed: int
    seconds: float
    numbers: Numbers
    verdict: Verdict

    def texts(self, language: Language) -> ExperimentTexts:
        return ExperimentTexts(self.experiment.name, language)

    def chart(self, language: Language) -> Chart:
        """The figure as data, its names in one language."""
        return self.experiment.draw(self.numbers, self.texts(language))

    def sentences(self, language: Language) -> list[tuple[bool, str]]:
        """Whether each check holds, and what it says."""
        texts = self.texts(language)
        return [(c.holds, texts.check_sentence(c.key, c.values)) for c in self.verdict.checks]

    def as_dict(self, language: Language) -> dict[str, Any]:
        """Everything in plain values, for JSON; what is no finite number is null."""
        texts = self.texts(language)
        plain = {
            "name": self.experiment.name,
            "size": self.size,
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            "torch": torch.__version__,
            "title": texts.title,
            "claim": texts.claim,
            "prediction": texts.prediction,
            "numbers": self.numbers,
            "chart": self.chart(language).as_dict(),
            "outcome": self.verdict.outcome,
            "checks": [
                {"key": c.key, "holds": c.holds, "sentence": sentence, "values": c.values}
                for c, (_, sentence) in zip(
                    self.verdict.checks, self.sentences(language), strict=True
                )
            ],
            "explanation": texts.explanation,
            "look_at": list(self.experiment.look_at),
        }
        return _replace_nonfinite(plain)


@dataclass(frozen=True, slots=True)
class PartialReport:
    """What an experiment has measured so far; valid until `show` returns."""

    experiment: Experiment
    numbers: Numbers

    def chart(self, language: Language) -> Chart:
        """The figure of the report, with gaps where nothing is measured yet."""
        drawn = self.experiment.draw(self.numbers, ExperimentTexts(self.experiment.name, language))
        return replace(drawn, panels=tuple(_leave_gaps(panel) for panel in drawn.panels))

    def plain_chart(self, language: Language) -> dict[str, Any]:
        """The same in plain values, for JSON."""
        return _replace_nonfinite(self.chart(language).as_dict())


def _leave_gaps(panel: Panel) -> Panel:
    """Every series with a value for each place: None for those to come."""
    if isinstance(panel, Cells):
        return panel
    n = len(panel.names if isinstance(panel, Bars) else panel.places)
    series = (
        Series(name=each.name, values=each.values + (None,) * (n - len(each.values)))
        for each in panel.series
    )
    return replace(panel, series=tuple(series))


def run_experiment(
    name: str,
    *,
    size: str = "full",
    seed: int = 0,
    progress: Callable[[float | int], None] = lambda _: None,
    show: Callable[[PartialReport], None] = lambda _: None,
    model: str | None = None,
) -> ExperimentReport:
    """Measure and judge; seeds, threads and gradients are afterwards as they were before.

    `progress` receives a share between 0 and 1. `show` receives what has been measured by then,
    many times a second: whoever draws it chooses when.

    >>> run_experiment("linear", size="quick").verdict.outcome
    'holds'
    """
    experiment = find_experiment(name)
    if size not in SIZES:
        raise ConfigError(f"The size must be {' or '.join(SIZES)}; got {size!r}.")
    if not 0 <= seed < 2**63:
        raise ConfigError(f"The seed must be at least 0 and below 2⁶³; got {seed}.")
    if model is not None and not experiment.takes_model:
        raise ConfigError(
            f"Only the experiment heads takes a saved model; got model={model!r} for {name}."
        )
    options = {} if model is None else {"model": model}

    def report(share: float | int, numbers: Numbers | None = None, /) -> None:
        progress(share)
        if numbers is not None:
            show(PartialReport(experiment, numbers))

    began = time.perf_counter()
    with _isolate_run(seed):
        numbers = experiment.measure(size, seed, report, **options)
    seconds = time.perf_counter() - began
    progress(1.0)
    return ExperimentReport(
        experiment=experiment,
        size=size,
        seed=seed,
        seconds=seconds,
        numbers=numbers,
        verdict=experiment.judge(numbers),
    )


@contextlib.contextmanager
def _isolate_run(seed: int) -> Iterator[None]:
    """One thread, so that a seed gives the same numbers anywhere and times are not shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def _replace_nonfinite(value: Any) -> Any:
    """JSON has no word for ∞ and NaN."""
    if isinstance(value, dict):
        return {name: _replace_nonfinite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
