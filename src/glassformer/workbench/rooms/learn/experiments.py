"""Experiments: what one claims, and a run of it with its chart and its verdict."""

import time
from typing import Any

from glassformer.languages import CODES, Language
from glassformer.school.lab import SECONDS, ExperimentTexts, find_experiment
from glassformer.school.lab.runner import ExperimentReport, PartialReport, run_experiment
from glassformer.workbench.jobs import Progress, Report
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.records import record_experiment
from glassformer.workbench.wire.learn import ExperimentRunRequest, PartRequest

_OUTCOMES = {"holds": "lab.holds", "partly": "lab.partly", "fails": "lab.fails"}
_MODELS = ["writer"]  # the included model that writes
_PAUSE = 0.1  # seconds between two drawings of what is being measured


def describe_experiment(asked: PartRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """An experiment before it runs."""
    experiment = find_experiment(asked.name)
    texts = ExperimentTexts(experiment.name, Language(asked.lang))
    return {
        "name": experiment.name,
        "title": texts.title,
        "claim": texts.claim,
        "prediction": texts.prediction,
        "seconds": dict(SECONDS[experiment.name]),
        "models": _MODELS if experiment.takes_model else [],
    }


def measure_experiment(
    asked: ExperimentRunRequest, _memory: Memory, progress: Report
) -> dict[str, Any]:
    """Run an experiment in this worker; the report is written in every language.

    Its charts are reported while they grow, as ExperimentPartial.
    """
    share, drawn_at = 0.0, 0.0

    def advance(new: float | int) -> None:
        nonlocal share
        share = float(new)
        progress(share)

    def show(measured: PartialReport) -> None:
        nonlocal drawn_at
        if time.monotonic() - drawn_at < _PAUSE:
            return
        charts = {code: measured.plain_chart(Language(code)) for code in CODES}
        drawn_at = time.monotonic()
        progress(share, {"charts": charts})

    report = run_experiment(
        asked.name,
        size=asked.size,
        seed=asked.seed,
        model=asked.model,
        progress=advance,
        show=show,
    )
    record_experiment(report)
    return {
        "outcome": report.verdict.outcome,
        "size": report.size,
        "seed": report.seed,
        "said": {code: _tell(report, Language(code)) for code in CODES},
        "look_at": [list(place) for place in report.experiment.places],
    }


def _tell(report: ExperimentReport, language: Language) -> dict[str, Any]:
    told = report.as_dict(language)
    return {
        "outcome": language.say(_OUTCOMES[report.verdict.outcome]),
        "checks": [{name: c[name] for name in ("holds", "sentence")} for c in told["checks"]],
        "chart": told["chart"],
        "explanation": told["explanation"],
        "took": report.describe_run(language),
    }
