"""From the name of an experiment to a report: measured and judged, with nothing left over."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.chart import Bars, Cells, Chart, Panel, Series
from glassformer.render.numbers import Spread
from glassformer.school.lab.catalogue import find_experiment
from glassformer.school.lab.experiment import SIZES, Check, Experiment, Numbers, Verdict
from glassformer.school.lab.repetition import combine_charts, combine_verdicts
from glassformer.school.lab.texts import ExperimentTexts


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperimentReport:
    """The result of an experiment: one run, or several that differ in nothing but their seed."""

    experiment: Experiment
    size: str
    seeds: tuple[int, ...]
    seconds: float
    runs: tuple[Numbers, ...]
    verdict: Verdict

    @property
    def seed(self) -> int:
        return self.seeds[0]

    def texts(self, language: Language) -> ExperimentTexts:
        return ExperimentTexts(self.experiment.name, language)

    def chart(self, language: Language) -> Chart:
        """The figure as data, its names in one language."""
        texts = self.texts(language)
        return combine_charts([self.experiment.draw(numbers, texts) for numbers in self.runs])

    def sentences(self, language: Language) -> list[tuple[bool, str]]:
        """Whether each check holds, and what it says."""
        texts = self.texts(language)
        return [
            (c.holds, _count(c, texts.check_sentence(c.key, c.values), language))
            for c in self.verdict.checks
        ]

    def describe_run(self, language: Language) -> str:
        """Size, seeds and time of the measurement, in a line."""
        made = {"size": self.size, "seconds": f"{self.seconds:.1f}", "torch": torch.__version__}
        if len(self.seeds) == 1:
            return language.say("lab.took", seed=self.seed, **made)
        return language.say("lab.took.seeds", first=self.seed, last=self.seeds[-1], **made)

    def as_dict(self, language: Language) -> dict[str, Any]:
        """Everything in plain values, for JSON; what is no finite number is null."""
        texts = self.texts(language)
        plain = {
            "name": self.experiment.name,
            "size": self.size,
            "seed": self.seed,
            "seeds": self.seeds,
            "seconds": round(self.seconds, 2),
            "torch": torch.__version__,
            "title": texts.title,
            "claim": texts.claim,
            "prediction": texts.prediction,
            "numbers": self.runs[0],  # of the first seed
            "runs": self.runs,
            "chart": self.chart(language).as_dict(),
            "outcome": self.verdict.outcome,
            "checks": [
                {
                    "key": c.key,
                    "holds": c.holds,
                    "runs": c.n_runs,
                    "held": c.n_held,
                    "sentence": sentence,
                    "values": c.values,
                }
                for c, (_, sentence) in zip(
                    self.verdict.checks, self.sentences(language), strict=True
                )
            ],
            "explanation": texts.explanation,
            "look_at": list(self.experiment.look_at),
        }
        return _make_plain(plain)


def _count(check: Check, sentence: str, language: Language) -> str:
    """The sentence of a check; of several runs, with the number of those in which it holds."""
    if check.n_runs == 1:
        return sentence
    return language.say("lab.held", sentence=sentence, held=check.n_held, n=check.n_runs)


@dataclass(frozen=True, slots=True)
class PartialReport:
    """What an experiment has measured so far, the last run in part; valid until `show` returns."""

    experiment: Experiment
    runs: tuple[Numbers, ...]

    def chart(self, language: Language) -> Chart:
        """The figure of the report, with gaps where nothing is measured yet."""
        texts = ExperimentTexts(self.experiment.name, language)
        drawn = [self.experiment.draw(numbers, texts) for numbers in self.runs]
        return combine_charts(
            [replace(each, panels=tuple(map(_leave_gaps, each.panels))) for each in drawn]
        )

    def plain_chart(self, language: Language) -> dict[str, Any]:
        """The same in plain values, for JSON."""
        return _make_plain(self.chart(language).as_dict())


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
    n_seeds: int | None = None,
) -> ExperimentReport:
    """Measure and judge; seeds, threads and gradients are afterwards as they were before.

    What is trained is measured with several seeds, from `seed` on; `n_seeds` asks for another
    number of them. A saved model is measured once.

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
    if n_seeds is not None and n_seeds < 1:
        raise ConfigError(f"n_seeds must be at least 1; got {n_seeds}.")
    if model is not None and not experiment.takes_model:
        raise ConfigError(
            f"Only the experiment heads takes a saved model; got model={model!r} for {name}."
        )
    options = {} if model is None else {"model": model}
    n_seeds = n_seeds or (experiment.n_seeds if model is None else 1)
    seeds = tuple(range(seed, seed + n_seeds))
    runs: list[Numbers] = []
    began = time.perf_counter()
    for own_seed in seeds:

        def report(share: float | int, numbers: Numbers | None = None, /) -> None:
            progress((len(runs) + share) / len(seeds))
            if numbers is not None:
                show(PartialReport(experiment, (*runs, numbers)))

        with _isolate_run(own_seed):
            runs.append(experiment.measure(size, own_seed, report, **options))
    seconds = time.perf_counter() - began
    progress(1.0)
    return ExperimentReport(
        experiment=experiment,
        size=size,
        seeds=seeds,
        seconds=seconds,
        runs=tuple(runs),
        verdict=combine_verdicts([experiment.judge(numbers) for numbers in runs]),
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


def _make_plain(value: Any) -> Any:
    """JSON has no word for ∞ and NaN, nor for a spread."""
    if isinstance(value, Spread):
        value = asdict(value)
    if isinstance(value, dict):
        return {name: _make_plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
