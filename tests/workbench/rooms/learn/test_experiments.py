"""Experiments: the room measures what `glassformer lab` measures."""

import json

import pytest

from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.lab.runner import run_experiment
from glassformer.school.progress import load_progress
from glassformer.workbench.jobs import Cancelled
from glassformer.workbench.rooms.learn import experiments
from glassformer.workbench.wire.learn import ExperimentPartial
from workbench.rooms.learn.asking import ask


def test_a_run_is_that_of_the_lab():
    found = ask("measure", name="scale", size="quick", seed=3)
    report = run_experiment("scale", size="quick", seed=3)
    assert found["outcome"] == report.verdict.outcome
    recorded = load_progress().experiments["scale"]
    assert (recorded.size, recorded.outcome) == ("quick", report.verdict.outcome)
    for code in CODES:
        said, told = found["said"][code], report.as_dict(Language(code))
        assert said["chart"] == told["chart"]
        assert [c["sentence"] for c in said["checks"]] == [c["sentence"] for c in told["checks"]]


def test_its_charts_are_told_while_it_runs(monkeypatch):
    monkeypatch.setattr(experiments, "_PAUSE", 0.0)
    seen: list[dict] = []

    def hear(_share: float, partial: dict | None = None) -> None:
        if partial is not None:
            ExperimentPartial.model_validate(partial)
            seen.append(json.loads(json.dumps(partial, allow_nan=False)))

    found = ask("measure", name="scale", size="quick", seed=3, progress=hear)
    assert len(seen) == 4  # of five widths
    for code in CODES:
        final = found["said"][code]["chart"]["panels"]
        for n, partial in enumerate(seen, 1):
            for panel, whole in zip(partial["charts"][code]["panels"], final, strict=True):
                for series, end in zip(panel["series"], whole["series"], strict=True):
                    assert series["name"] == end["name"]
                    assert series["values"] == end["values"][:n] + [None] * (5 - n)


def test_charts_are_not_drawn_more_often_than_one_can_see(monkeypatch):
    monkeypatch.setattr(experiments, "_PAUSE", 600.0)
    seen: list[float] = []
    ask("measure", name="scale", progress=lambda share, partial=None: seen.append(partial))
    assert sum(each is not None for each in seen) <= 1


def test_an_experiment_says_what_it_claims_before_it_runs():
    found = ask("experiment", name="heads", lang="zh")
    assert found["models"] == ["writer"] and found["claim"] and found["prediction"]
    assert ask("experiment", name="scale")["models"] == []
    with pytest.raises(ConfigError, match="Did you mean scale"):
        ask("experiment", name="scales")


def test_a_run_that_nobody_waits_for_stops():
    def leave(share: float, _partial: object = None) -> None:
        if share > 0.3:
            raise Cancelled

    with pytest.raises(Cancelled):
        ask("measure", name="scale", progress=leave)


def test_only_the_experiment_on_heads_takes_a_model():
    with pytest.raises(ConfigError, match="Only the experiment heads takes a saved model"):
        ask("measure", name="scale", model="writer")
