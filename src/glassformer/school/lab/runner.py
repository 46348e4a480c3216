"""From the name of an experiment to a report: measured and judged, with nothing left over."""

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.chart import Chart
from glassformer.school.lab.catalogue import find
from glassformer.school.lab.experiment import SIZES, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import Progress
from glassformer.school.lab.texts import Words


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What came out of one run of an experiment."""

    experiment: Experiment
    size: str
    seed: int
    seconds: float
    numbers: Numbers
    verdict: Verdict

    def words(self, language: Language) -> Words:
        return Words(self.experiment.name, language)

    def chart(self, language: Language) -> Chart:
        """The figure as data, its names in one language."""
        return self.experiment.draw(self.numbers, self.words(language))

    def sentences(self, language: Language) -> list[tuple[bool, str]]:
        """Whether each check holds, and what it says."""
        words = self.words(language)
        return [(c.holds, words.told(c.key, c.values)) for c in self.verdict.checks]

    def as_dict(self, language: Language) -> dict[str, Any]:
        """Everything in plain values, for JSON; what is no finite number is null."""
        words = self.words(language)
        plain = {
            "name": self.experiment.name,
            "size": self.size,
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            "torch": torch.__version__,
            "title": words.title,
            "claim": words.claim,
            "prediction": words.prediction,
            "numbers": self.numbers,
            "chart": self.chart(language).as_dict(),
            "outcome": self.verdict.outcome,
            "checks": [
                {"key": c.key, "holds": c.holds, "sentence": sentence, "values": c.values}
                for c, (_, sentence) in zip(
                    self.verdict.checks, self.sentences(language), strict=True
                )
            ],
            "explanation": words.explanation,
            "look_at": list(self.experiment.look_at),
        }
        return _finite(plain)


def run(
    name: str,
    *,
    size: str = "full",
    seed: int = 0,
    progress: Progress = lambda _: None,
    model: str | None = None,
) -> Report:
    """Measure and judge; seeds, threads and gradients are afterwards as they were before.

    >>> run("linear", size="quick").verdict.outcome
    'holds'
    """
    experiment = find(name)
    if size not in SIZES:
        raise ConfigError(f"The size must be {' or '.join(SIZES)}; got {size!r}.")
    if not 0 <= seed < 2**63:
        raise ConfigError(f"The seed must be at least 0 and below 2⁶³; got {seed}.")
    if model is not None and not experiment.takes_model:
        raise ConfigError(
            f"Only the experiment heads takes a saved model; got model={model!r} for {name}."
        )
    options = {} if model is None else {"model": model}
    began = time.perf_counter()
    with _by_itself(seed):
        numbers = experiment.measure(size, seed, progress, **options)
    seconds = time.perf_counter() - began
    progress(1.0)
    return Report(
        experiment=experiment,
        size=size,
        seed=seed,
        seconds=seconds,
        numbers=numbers,
        verdict=experiment.judge(numbers),
    )


@contextlib.contextmanager
def _by_itself(seed: int) -> Iterator[None]:
    """One thread, so that a seed gives the same numbers anywhere and times are not shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def _finite(value: Any) -> Any:
    """JSON has no word for ∞ and NaN."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
