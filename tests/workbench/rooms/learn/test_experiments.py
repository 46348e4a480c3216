"""Experiments: the room measures what `glassformer lab` measures."""

import pytest

from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.lab.runner import run_experiment
from glassformer.workbench.jobs import Cancelled
from workbench.rooms.learn.asking import ask


def test_a_run_is_that_of_the_lab():
    found = ask("measure", name="scale", size="quick", seed=3)
    report = run_experiment("scale", size="quick", seed=3)
    assert found["outcome"] == report.verdict.outcome
    for code in CODES:
        said, told = found["said"][code], report.as_dict(Language(code))
        assert said["chart"] == told["chart"]
        assert [c["sentence"] for c in said["checks"]] == [c["sentence"] for c in told["checks"]]


def test_an_experiment_says_what_it_claims_before_it_runs():
    found = ask("experiment", name="heads", lang="zh")
    assert found["models"] == ["writer"] and found["claim"] and found["prediction"]
    assert ask("experiment", name="scale")["models"] == []
    with pytest.raises(ConfigError, match="Did you mean scale"):
        ask("experiment", name="scales")


def test_a_run_that_nobody_waits_for_stops():
    def leave(share: float) -> None:
        if share > 0.3:
            raise Cancelled

    with pytest.raises(Cancelled):
        ask("measure", name="scale", progress=leave)


def test_only_the_experiment_on_heads_takes_a_model():
    with pytest.raises(ConfigError, match="Only the experiment heads takes a saved model"):
        ask("measure", name="scale", model="writer")
