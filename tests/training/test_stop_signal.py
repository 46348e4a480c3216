"""A run that is asked to stop: it saves itself, is usable at once, and resumes to the same bits."""

import os
import signal

import pytest
import torch

import glassformer as gf
from glassformer.errors import CheckpointError
from glassformer.training import TrainingInterrupted
from glassformer.training.averaging import mean_weights
from glassformer.training.checkpointing import SavedTensors
from training import small_runs
from training.small_runs import RecordingDisplay, run, weights, with_changes


@pytest.fixture
def short(tmp_path):
    return small_runs.language(tmp_path, until={"steps": 24}, save={"every_steps": 8})


def stop_at(step, number=signal.SIGINT):
    return RecordingDisplay(at=step, do=lambda: os.kill(os.getpid(), number))


def equal(ours, theirs):
    return ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)


@pytest.mark.plain
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, short, number):
    out = tmp_path / "a"
    before = signal.getsignal(number)
    with pytest.raises(TrainingInterrupted, match=r"after step 10 of 24\. .*--resume --out .*/a"):
        run(short, out, show=stop_at(10, number))
    assert signal.getsignal(number) is before
    assert (out / "checkpoints" / "00000010-stop" / "state.json").is_file()
    run(short, out, resume=True)
    run(short, tmp_path / "b")
    assert equal(weights(out / "model"), weights(tmp_path / "b" / "model"))


def test_an_interruption_does_not_change_the_mean(tmp_path, short):
    recipe = with_changes(short, "save.every_steps=4", "save.average=3", "save.keep=1")
    with pytest.raises(TrainingInterrupted):
        run(recipe, tmp_path / "a", show=stop_at(10))
    run(recipe, tmp_path / "a", resume=True)
    run(recipe, tmp_path / "b")
    ours, theirs = weights(tmp_path / "a" / "model"), weights(tmp_path / "b" / "model")
    assert equal(ours, theirs)
    paths = [tmp_path / "b" / "checkpoints" / f"{n:08d}" for n in (16, 20, 24)]
    mean = mean_weights([SavedTensors(path, "model").all() for path in paths])
    assert all(torch.equal(theirs[name], tensor) for name, tensor in mean.items())
    kept = sorted(p.name for p in paths[0].iterdir())
    assert kept == ["SHA256SUMS", "model-0.safetensors"]


def test_a_stopped_run_loads_its_latest_weights(tmp_path, short):
    out = tmp_path / "run"
    with pytest.raises(TrainingInterrupted, match=rf"usable now: --model {out}\."):
        run(short, out, show=stop_at(10))
    model = gf.load(out)
    assert model.name == "run/latest"
    saved = SavedTensors(out / "checkpoints" / "00000010-stop", "model").all()
    assert equal(model.state_dict(), saved)
    run(short, out, resume=True)
    assert gf.load(out).name == "run/model" and not (out / "latest").exists()


def test_a_stopped_run_prefers_its_best_weights(tmp_path, short):
    recipe = with_changes(short, "evaluate.every_steps=4")
    with pytest.raises(TrainingInterrupted):
        run(recipe, tmp_path / "run", show=stop_at(10))
    assert gf.load(tmp_path / "run").name == "run/best"
    run(recipe, tmp_path / "run", resume=True)
    more = with_changes(recipe, "until.steps=40")
    with pytest.raises(TrainingInterrupted, match="after step 30 of 40"):
        run(more, tmp_path / "run", resume=True, show=stop_at(30))
    assert gf.load(tmp_path / "run").name == "run/best"  # model/ is that of step 24


def test_a_stopped_run_has_the_moving_average_where_it_keeps_one(tmp_path, short):
    out = tmp_path / "run"
    with pytest.raises(TrainingInterrupted):
        run(with_changes(short, "save.ema=0.9"), out, show=stop_at(10))
    average = SavedTensors(out / "checkpoints" / "00000010-stop", "average").all()
    ours = weights(out)
    assert all(torch.equal(ours[name], tensor) for name, tensor in average.items())


def test_a_run_without_weights_says_so(tmp_path, short):
    run(short, out := tmp_path / "run")
    for name in ("model", "best"):
        if (out / name).exists():
            (out / name).rename(tmp_path / name)
    with pytest.raises(CheckpointError, match=r"has not saved a model yet\. Continue it with: "):
        gf.load(out)


def test_the_totals_agree(tmp_path, short):
    """The display ends at the step where the run ends, whatever ended it."""
    show = RecordingDisplay()
    epochs = with_changes(short, "until.steps=1000", "until.epochs=3", "show.every=7")
    result = run(epochs, tmp_path / "a", show=show)
    assert show.last == show.totals[-1] == result.steps
    assert abs(show.totals[0] - result.steps) <= 3  # epochs differ by a step at most
    stopping = stop_at(14)
    with pytest.raises(TrainingInterrupted) as stopped:
        run(epochs, tmp_path / "b", show=stopping)
    assert f"after step 14 of {stopping.totals[-1]}." in str(stopped.value)
    show = RecordingDisplay()
    patient = with_changes(
        short, "until.steps=1000", "until.patience=1", "evaluate.every_steps=3", "schedule.lr=1e-9"
    )
    result = run(patient, tmp_path / "c", show=show)
    assert show.last == show.totals[-1] == result.steps < 1000
    assert any(text.startswith("Stopping early: no better score in 1") for text in show.said)
