"""What happens between steps: saving, going on, stopping, giving up."""

import json
import resource
from dataclasses import replace

import pytest
import torch

import glassformer as gf
from glassformer.errors import CheckpointError, ConfigError, DataError, TrainingError
from glassformer.layers import Block
from glassformer.settings import as_plain
from glassformer.training import Recipe, train
from glassformer.training.checkpointing import SavedTensors
from glassformer.training.data import open_data, prepare_data
from glassformer.training.display import SilentDisplay
from glassformer.training.loop import Trainer
from glassformer.training.model_building import build_model
from glassformer.training.parallel import Parallel
from glassformer.training.run_folder import RunFolder
from glassformer.training.tasks import TASKS
from training import small_runs
from training.small_runs import RecordingDisplay, run, weights, with_changes


def lines(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def short(tmp_path):
    return small_runs.language(tmp_path, until={"steps": 24}, save={"every_steps": 8})


def gradients_of(recipe, folder):
    """The gradients of one step of a recipe."""
    prepare_data(recipe, folder)
    task = TASKS[recipe.task](recipe, open_data(folder))
    told = SilentDisplay()
    trainer = Trainer(
        recipe,
        build_model(recipe, task),
        task,
        RunFolder(folder),
        Parallel(torch.device("cpu")),
        told,
    )
    kept = {}
    trainer.optimizer.zero_grad = lambda **_: None
    from glassformer.training.step_plan import plan_steps

    n = recipe.batches.accumulate
    work = next(plan_steps(task, trainer.parallel, epoch=0, index=0, accumulate=n))
    trainer._update(work)
    kept = {name: p.grad.clone() for name, p in trainer.model.named_parameters()}
    return kept, work


def test_four_micro_batches_are_one_large_batch(tmp_path):
    small_runs.pairs(tmp_path, n=64)
    source, target = tmp_path / "words.txt", tmp_path / "backwards.txt"
    base = small_runs.translation(tmp_path, label_smoothing=0.1, optimizer={"clip": 0.0})
    small_runs.pairs(tmp_path, n=64)
    files = [{"files": [str(source), str(target)]}]
    values = {**as_plain(base), "data": {"train": files}}
    whole = Recipe.from_dict(values, ["batches.max_tokens=100000"])
    parts = Recipe.from_dict(values, ["batches.max_rows=16", "batches.accumulate=4"])
    one, work = gradients_of(whole, tmp_path / "whole")
    four, work4 = gradients_of(parts, tmp_path / "parts")
    assert len(work.batches) == 1 and len(work4.batches) == 4
    assert work.n_targets == work4.n_targets
    for name, gradient in one.items():
        torch.testing.assert_close(four[name], gradient, atol=1e-6, rtol=1e-4)


def test_recomputing_blocks_changes_nothing(tmp_path):
    recipe = small_runs.translation(tmp_path, model={"dropout": {"residual": 0.3}})
    usual, _ = gradients_of(recipe, tmp_path / "a")
    again, _ = gradients_of(with_changes(recipe, "compute.checkpointing=true"), tmp_path / "b")
    for name, gradient in usual.items():
        assert torch.equal(gradient, again[name]), name


def test_consistency_without_dropout_is_the_plain_loss(tmp_path):
    quiet = {"embedding": 0.0, "weights": 0.0, "hidden": 0.0, "residual": 0.0}
    recipe = small_runs.translation(tmp_path, model={"dropout": quiet})
    usual, _ = gradients_of(recipe, tmp_path / "a")
    twice, _ = gradients_of(with_changes(recipe, "consistency=5.0"), tmp_path / "b")
    for name, gradient in usual.items():
        torch.testing.assert_close(twice[name], gradient, atol=1e-6, rtol=1e-4)


def test_consistency_pulls_two_answers_together(tmp_path):
    noisy = {"residual": 0.3}
    recipe = small_runs.translation(tmp_path, model={"dropout": noisy})
    plain_twice, _ = gradients_of(with_changes(recipe, "consistency=1e-9"), tmp_path / "a")
    pulled, _ = gradients_of(with_changes(recipe, "consistency=5.0"), tmp_path / "b")
    assert any(not torch.allclose(pulled[n], g, rtol=1e-2) for n, g in plain_twice.items())


def test_two_runs_are_one(tmp_path, short):
    for name in "ab":
        run(short, tmp_path / name)
    ours, theirs = weights(tmp_path / "a" / "model"), weights(tmp_path / "b" / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    other = with_changes(short, "seed=2")
    run(other, tmp_path / "c")
    assert any(not torch.equal(ours[n], t) for n, t in weights(tmp_path / "c" / "model").items())


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path, short):
    run(with_changes(short, "until.steps=11"), tmp_path / "a")
    assert sorted(p.name for p in (tmp_path / "a/checkpoints").iterdir()) == [
        "00000008",
        "00000011-stop",
    ]
    run(short, tmp_path / "a", resume=True)
    run(short, tmp_path / "b")
    ours, theirs = weights(tmp_path / "a" / "model"), weights(tmp_path / "b" / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert [line["step"] for line in lines(tmp_path / "a") if "loss" in line][-1] == 24


def test_metrics_after_the_checkpoint_are_forgotten(tmp_path, short):
    out = tmp_path / "a"
    run(short, out)
    before = len(lines(out))
    with (out / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99, "loss": 1}\n{"step": 100, "lo')
    run(short, out, resume=True)
    steps = [line["step"] for line in lines(out)]
    assert max(steps) == 24 and len(steps) == before  # the final scores are there once


def test_the_moving_average_becomes_the_model(tmp_path, short):
    recipe = with_changes(short, "save.ema=0.9", "evaluate.every_steps=8")
    run(with_changes(recipe, "until.steps=13"), tmp_path / "a")
    run(recipe, tmp_path / "a", resume=True)
    run(recipe, tmp_path / "b")
    ours, theirs = weights(tmp_path / "a" / "model"), weights(tmp_path / "b" / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    last = SavedTensors(tmp_path / "b" / "checkpoints" / "00000024", "average").all()
    assert all(torch.equal(ours[name], tensor) for name, tensor in last.items())


@pytest.mark.plain
def test_a_loss_that_is_no_number(tmp_path, monkeypatch):
    recipe = small_runs.translation(
        tmp_path, until={"steps": 30}, save={"every_steps": 5}, show={"every": 4}
    )
    from glassformer.training.tasks import task as tasks

    real, calls = tasks.linear_cross_entropy_sum, []

    def broken(*tensors, **options):
        calls.append(1)
        return real(*tensors, **options) * (float("nan") if len(calls) == 14 else 1.0)

    monkeypatch.setattr(tasks, "linear_cross_entropy_sum", broken)
    out = tmp_path / "a"
    with pytest.raises(TrainingError, match=r"at step 14 it is nan, with .*words.txt line \d+"):
        run(recipe, out)
    kept = sorted(p.name for p in (out / "checkpoints").iterdir())
    assert kept == ["00000005", "00000010"]
    saved = SavedTensors(out / "checkpoints" / "00000010", "model").all()
    assert all(tensor.isfinite().all() for tensor in saved.values())
    bad = json.loads((out / "bad_batch.json").read_text())
    assert bad["step"] == 14 and bad["value"] == "nan"
    assert len(bad["places"]) == len(bad["tensors"][0]["targets"])
    monkeypatch.setattr(tasks, "linear_cross_entropy_sum", real)
    run(recipe, out, resume=True)
    run(recipe, tmp_path / "b")
    ours, theirs = weights(out / "model"), weights(tmp_path / "b" / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.plain
def test_a_full_disk(tmp_path, short):
    """A limit on the size of files stands for the disk: writing fails in the same place."""
    out = tmp_path / "a"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))

    try:
        with pytest.raises(CheckpointError, match=r"00000016 could not be written: .*--resume"):
            run(with_changes(short, "show.every=2"), out, show=RecordingDisplay(at=10, do=fill))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [p.name for p in (out / "checkpoints").iterdir()] == ["00000008"]
    run(short, out, resume=True)
    run(short, tmp_path / "b")
    ours, theirs = weights(out / "model"), weights(tmp_path / "b" / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.plain
def test_a_folder_is_for_one_run_at_a_time(tmp_path, short):
    folder = RunFolder(tmp_path / "run")
    with folder.lock(), pytest.raises(TrainingError, match="another process is training in"):
        run(short, tmp_path / "run")
    assert run(short, tmp_path / "run").steps  # nothing was left behind


@pytest.mark.parametrize("place", ["file", "file/run"])
def test_a_place_that_is_no_folder(tmp_path, short, place):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TrainingError, match=r"needs a folder it can write to; .*file"):
        run(short, tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"


def test_folders_that_are_taken(tmp_path, short):
    out = tmp_path / "a"
    run(with_changes(short, "until.steps=8"), out)
    with pytest.raises(ConfigError, match=r"already holds a run\. Resume it with --resume"):
        run(short, out)
    changed = with_changes(short, "schedule.lr=0.5", "model.dim=64")
    with pytest.raises(
        ConfigError, match=r"model.dim was 32 and is 64; schedule.lr was 0.005 and is 0.5"
    ):
        run(changed, out, resume=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ConfigError, match="mine holds something else"):
        run(short, tmp_path / "mine")
    with pytest.raises(ConfigError, match="needs a folder; set out"):
        train(short, device="cpu", show=SilentDisplay())


def test_a_folder_in_which_nothing_was_trained_is_free(tmp_path):
    """Wrong data end a run before its first step; the same words with better data begin it."""
    out = tmp_path / "a"
    recipe = small_runs.translation(tmp_path, until={"steps": 2})
    texts = [path.read_text() for path in small_runs.pairs(tmp_path)]
    for path in small_runs.pairs(tmp_path):
        path.write_text("a\n" * 50)
    with pytest.raises(
        DataError, match="At least one example to validate with is required; none of 50"
    ):
        run(recipe, out)
    assert (out / "essence.json").is_file()
    for path, text in zip(small_runs.pairs(tmp_path), texts, strict=True):
        path.write_text(text)
    assert run(recipe, out).steps == 2
    with pytest.raises(ConfigError, match="already holds a run"):
        run(recipe, out)


def test_patience_ends_a_run(tmp_path, short):
    recipe = with_changes(
        short, "until.steps=500", "until.patience=2", "evaluate.every_steps=5", "schedule.lr=1e-30"
    )
    out = tmp_path / "a"
    result = run(recipe, out)
    losses = [line["valid_loss"] for line in lines(out) if "valid_loss" in line]
    assert result.steps == 15 and len(losses) == 3  # the first is the best, then two no better
    assert (out / "best" / "config.json").is_file()


def test_the_best_is_kept(tmp_path):
    recipe = small_runs.translation(
        tmp_path,
        until={"steps": 40},
        evaluate={"every_steps": 20, "bleu": True, "best": "bleu", "n_texts": 9},
    )
    out = tmp_path / "a"
    result = run(recipe, out)
    assert {"bleu", "chrf"} <= set(result.scores)
    scored = [line for line in lines(out) if "valid_bleu" in line]
    assert len(scored) == 2 and (out / "best").is_dir()


def test_without_sacrebleu_training_runs(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    recipe = small_runs.translation(
        tmp_path, until={"steps": 4}, evaluate={"every_steps": 2, "bleu": True, "best": "bleu"}
    )
    show = RecordingDisplay()
    result = run(recipe, tmp_path / "a", show=show)
    assert "bleu" not in result.scores
    assert any("sacrebleu is not installed" in text for text in show.said)


@pytest.mark.parametrize("kind", ["translation", "language", "masked"])
def test_a_film_is_taken(tmp_path, kind):
    texts = {"translation": "a b c", "language": "abc", "masked": "ab[MASK]d"}
    recipe = getattr(small_runs, kind)(
        tmp_path, until={"steps": 6}, snapshots={"every": 3, "text": texts[kind]}
    )
    out = tmp_path / "a"
    run(recipe, out)
    assert sorted(p.name for p in (out / "snapshots").glob("*.trace")) == [
        "00000003.trace",
        "00000006.trace",
    ]
    trace = gf.Trace.load(out / "snapshots" / "00000006.trace")
    assert len(trace) >= 1
    samples = (out / "snapshots" / "samples.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in samples]
    assert [each["step"] for each in told] == [3, 6] and told[0]["text"] == texts[kind]


def test_half_precision_learns_too(tmp_path):
    recipe = with_changes(small_runs.language(tmp_path), "compute.precision=bf16")
    result = run(recipe, tmp_path / "a")
    assert result.scores["accuracy"] > 0.95
    assert all(t.dtype == torch.float32 for t in weights(result.model).values())


def test_a_residual_stream_of_16_bits_learns_as_well(tmp_path, monkeypatch):
    base = with_changes(small_runs.language(tmp_path), "compute.precision=bf16")
    with pytest.raises(ConfigError, match=r"'half' goes with compute\.precision bf16"):
        with_changes(base, "compute.precision=fp32", "compute.residual=half")
    seen, forward, losses = [], Block.forward, []

    def note(block, x, **options):
        seen.append(x.dtype)
        return forward(block, x, **options)

    monkeypatch.setattr(Block, "forward", note)
    for stream, dtype in (("fp32", torch.float32), ("half", torch.bfloat16)):
        seen.clear()
        result = run(with_changes(base, f"compute.residual={stream}"), tmp_path / stream)
        assert {*seen} == {dtype} and result.scores["accuracy"] > 0.95
        assert all(t.dtype == torch.float32 for t in weights(result.model).values())
        losses.append(result.scores["loss"])
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.3)


@pytest.mark.plain
def test_compiled_gives_the_same_losses(tmp_path, short):
    base = with_changes(short, "until.steps=6", "show.every=2")
    run(base, tmp_path / "a")
    run(with_changes(base, "compute.compile=true"), tmp_path / "b")
    ours, theirs = (
        [line["loss"] for line in lines(tmp_path / name) if "loss" in line] for name in "ab"
    )
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_a_resumed_run_needs_no_files(tmp_path, short):
    run(with_changes(short, "until.steps=8"), tmp_path / "a")
    (tmp_path / "alphabet.txt").unlink()
    recipe = Recipe.from_toml(tmp_path / "a" / "recipe.toml", ["until.steps=12"])
    assert run(recipe, tmp_path / "a", resume=True).steps == 12


def test_what_was_wrong_is_reported(tmp_path):
    recipe = small_runs.translation(tmp_path, until={"steps": 2}, batches={"max_len": 4})
    run(recipe, tmp_path / "a")
    report = json.loads((tmp_path / "a" / "report.json").read_text())
    assert report["train"]["lines"] == 1000
    file, line, n_tokens = report["train"]["left out as too long"][0]
    assert file.endswith("words.txt") and line >= 1 and n_tokens > 4


def test_tensorboard_must_be_there(tmp_path, short, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    recipe = replace(short, show=replace(short.show, tensorboard=True))
    with pytest.raises(ConfigError, match="needs the package tensorboard"):
        run(recipe, tmp_path / "a")
