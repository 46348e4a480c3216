"""A run that is killed at any moment goes on to the same bits."""

import multiprocessing
import random
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from glassformer.train import Recipe, train
from glassformer.train.progress import Silence
from train import small_runs

KILLS = 20


def go_on(recipe: Recipe, out: Path) -> None:
    torch.set_num_threads(1)
    train(recipe, out=out, resume=True, device="cpu", show=Silence())


@pytest.fixture(scope="module")
def processes():
    """Processes that start with everything imported, as children of one that has done nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["glassformer.train", "glassformer.generate"])
    return context


@pytest.mark.plain
def test_killed_at_twenty_random_moments(tmp_path, processes):
    recipe = small_runs.translation(
        tmp_path,
        seed=11,
        model={"n_layers": 1, "dropout": {"residual": 0.2, "embedding": 0.1}},
        batches={"max_tokens": 200, "accumulate": 2},
        until={"steps": 240},
        evaluate={"every_epochs": 1},
        save={"every_steps": 3, "keep": 2, "average": 3, "ema": 0.0},
        show={"every": 2},
    )
    whole = processes.Process(target=go_on, args=(recipe, tmp_path / "whole"))
    whole.start()
    whole.join()
    assert whole.exitcode == 0

    rng, kills, lives = random.Random(5), 0, 0
    out = tmp_path / "killed"
    while kills < KILLS:
        lives += 1
        life = processes.Process(target=go_on, args=(recipe, out))
        life.start()
        life.join(timeout=rng.uniform(0.02, 1.2))
        if life.is_alive():
            life.kill()
            kills += 1
            life.join()
        elif (out / "model").is_dir():  # it came to its end: the rest of the kills hit another
            assert_same(tmp_path / "whole", out)
            shutil.rmtree(out)
    last = processes.Process(target=go_on, args=(recipe, out))
    last.start()
    last.join()
    assert last.exitcode == 0
    assert_same(tmp_path / "whole", out)


def assert_same(expected: Path, found: Path) -> None:
    for name in ("model", "best"):
        theirs = load_file(expected / name / "model.safetensors")
        ours = load_file(found / name / "model.safetensors")
        assert theirs.keys() == ours.keys()
        for key, tensor in theirs.items():
            assert torch.equal(tensor, ours[key]), (name, key)
    last = {p.name for p in (expected / "checkpoints").iterdir()}
    assert {p.name for p in (found / "checkpoints").iterdir()} == last
    for group in ("model", "optimizer"):
        newest = max(last)
        theirs = load_file(expected / "checkpoints" / newest / f"{group}-0.safetensors")
        ours = load_file(found / "checkpoints" / newest / f"{group}-0.safetensors")
        assert all(torch.equal(tensor, ours[key]) for key, tensor in theirs.items())
