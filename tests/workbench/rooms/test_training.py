"""Training: a small real run, read as it was written and followed line by line."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.tracing import Trace
from glassformer.training import TrainingInterrupted
from glassformer.workbench.desk import handle
from glassformer.workbench.jobs import Cancelled
from glassformer.workbench.wire import JOBS
from training.small_runs import RecordingDisplay, language, run, translation

SHORT = {"until": {"steps": 30}, "show": {"every": 5}, "evaluate": {"every_steps": 10}}
FILMED = {**SHORT, "snapshots": {"every": 10, "text": "abcabc"}}


def ask(job: str, folder: Path, **asked: Any) -> Any:
    found = handle(job, {"model": "run", "sources": {"run": str(folder)}, **asked}, lambda _: None)
    JOBS[job].answered.model_validate(found)
    return json.loads(json.dumps(found, allow_nan=False))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("films")
    run(language(there, **FILMED), there / "run")
    return there / "run"


def test_a_finished_run_is_what_its_files_say(folder: Path) -> None:
    found = ask("training", folder)
    assert (found["state"], found["task"], found["steps"]) == ("finished", "language", 30)
    assert (found["text"], found["snapshots_every"]) == ("abcabc", 10)
    assert found["snapshots"] == [10, 20, 30] and found["seconds_since"] >= 0
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(each["step"], each["epoch"]) for each in found["metrics"]["lines"]] == [
        (line["step"], line["epoch"]) for line in lines
    ]
    for line, each in zip(lines, found["metrics"]["lines"], strict=True):
        assert each["values"] == {k: v for k, v in line.items() if k not in ("step", "epoch")}
    names = {name for each in found["metrics"]["lines"] for name in each["values"]}
    assert {"loss", "lr", "tokens_per_s", "valid_loss", "final_loss"} <= names
    samples = (folder / "snapshots" / "samples.jsonl").read_text().splitlines()
    assert found["samples"]["lines"] == [json.loads(line) for line in samples]


def test_only_new_lines_are_read(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    whole = (folder / "metrics.jsonl").read_bytes()
    (copy / "essence.json").write_bytes((folder / "essence.json").read_bytes())
    lines = whole.splitlines(keepends=True)
    (copy / "metrics.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:9])
    first = ask("training", copy)
    assert first["state"] == "unfinished" and first["metrics"]["is_anew"]
    assert len(first["metrics"]["lines"]) == 3  # the fourth is still being written
    again = ask("training", copy, metrics=first["metrics"]["mark"])["metrics"]
    assert again == {**first["metrics"], "is_anew": False, "lines": []}
    (copy / "metrics.jsonl").write_bytes(whole)
    rest = ask("training", copy, metrics=again["mark"])["metrics"]
    assert (rest["is_anew"], len(rest["lines"])) == (False, len(lines) - 3)
    # A run that was resumed from an earlier step has dropped lines and writes others.
    (copy / "metrics.jsonl").write_bytes(lines[0] + lines[2])
    anew = ask("training", copy, metrics=rest["mark"])["metrics"]
    assert anew["is_anew"] and len(anew["lines"]) == 2


def test_numbers_that_are_none_and_broken_lines_are_left_out(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(
        '{"step": 1, "loss": NaN, "lr": 0.5}\nbroken\n[1]\n{"step": "two"}\n'
        '{"step": 2, "loss": 1}\n'
    )
    found = ask("training", tmp_path)
    assert found["task"] is None and found["snapshots"] == []
    assert [each["values"] for each in found["metrics"]["lines"]] == [{"lr": 0.5}, {"loss": 1.0}]


def test_a_film_shows_the_weights_of_each_snapshot(folder: Path) -> None:
    film = ask("film", folder, heads=[{"site": "decoder.0.self", "head": 1}])
    assert film["sites"] == [{"site": "decoder.0.self", "heads": [0, 1]}]
    assert [frame["step"] for frame in film["frames"]] == [10, 20, 30]
    for frame in film["frames"]:
        trace = Trace.load(folder / "snapshots" / f"{frame['step']:08d}.trace")
        (drawn,) = frame["maps"]
        assert drawn["rows"] == drawn["keys"] == list("abcabc") and not drawn["is_pooled"]
        expected = trace["decoder.0.self"].weights(head=1)
        assert torch.equal(torch.tensor(drawn["weights"]), expected)
    first, last = (torch.tensor(film["frames"][n]["maps"][0]["weights"]) for n in (0, -1))
    assert not torch.equal(first, last)  # it has learnt something
    later = ask("film", folder, heads=[{"site": "decoder.0.self", "head": 1}], after=20)
    assert later["frames"] == film["frames"][2:]
    gone = ask("film", folder, heads=[{"site": "decoder.9.self", "head": 0}])
    assert [frame["maps"] for frame in gone["frames"]] == [[], [], []]


def test_a_film_that_names_no_heads_shows_the_sharpest(folder: Path) -> None:
    film = ask("film", folder)
    trace = Trace.load(folder / "snapshots" / "00000030.trace")
    sharpest = int(trace["decoder.0.self"].sharpness().argmax())
    assert film["chosen"] == [{"site": "decoder.0.self", "head": sharpest}]


def test_a_damaged_snapshot_is_named_and_whoever_leaves_ends_the_film(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "essence.json").write_text("{}")
    for name in ("00000010.trace", "00000020.trace"):
        (tmp_path / "snapshots" / name).write_bytes((folder / "snapshots" / name).read_bytes())
    (tmp_path / "snapshots" / "00000030.trace").write_bytes(b"half")
    film = ask("film", tmp_path)
    assert film["unreadable"] == [30] and [f["step"] for f in film["frames"]] == [10, 20]
    shares: list[float] = []

    def leave(share: float) -> None:
        shares.append(share)
        if len(shares) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        handle("film", {"model": "run", "sources": {"run": str(folder)}}, leave)
    assert shares == [0.0, pytest.approx(1 / 3)]


def test_a_stopped_run_says_so_and_has_no_film_without_snapshots(tmp_path: Path) -> None:
    stopping = RecordingDisplay(at=10, do=lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(TrainingInterrupted):
        run(translation(tmp_path, **SHORT), tmp_path / "run", show=stopping)
    found = ask("training", tmp_path / "run")
    assert (found["state"], found["snapshots_every"], found["text"]) == ("stopped", 0, None)
    assert found["metrics"]["lines"][-1]["step"] == 10
    assert ask("film", tmp_path / "run")["frames"] == []


def test_what_is_no_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run is not a training run\. Start the workbench with"):
        ask("training", tmp_path)
    with pytest.raises(ConfigError, match="writer is not a training run"):
        handle("film", {"model": "writer"}, lambda _: None)
