"""Two processes reach what one reaches, and read each other's checkpoints."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from training import small_runs

ONE = [sys.executable, "-m", "glassformer", "train"]
MANY = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipe")
    path = folder / "recipe.toml"
    found = small_runs.translation(
        folder,
        model={"n_layers": 1},
        until={"steps": 12},
        save={"every_steps": 6},
        evaluate={"every_steps": 6},
        show={"every": 6},
        batches={"accumulate": 2},
    )
    path.write_text(found.as_toml())
    return path


def words(recipe, out, *changes):
    change = [word for each in changes for word in ("--set", each)]
    return [str(recipe), "--resume", "--out", str(out), "--device", "cpu", *change]


def run(command):
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def many(n, *words):
    return [*MANY, f"--nproc-per-node={n}", "-m", "glassformer", "train", *words]


def losses(out):
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [line[n] for line in found for n in ("loss", "valid_loss", "final_loss") if n in line]


@pytest.fixture(scope="module")
def alone(recipe, tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "run"
    run([*ONE, *words(recipe, out)])
    run([*ONE, *words(recipe, out, "until.steps=18")])
    return out


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_reach_what_one_does_and_one_goes_on(recipe, alone, tmp_path, kind):
    out = tmp_path / "run"
    run(many(2, *words(recipe, out, f"compute.parallel={kind}")))
    run([*ONE, *words(recipe, out, "until.steps=18")])
    assert losses(out) == pytest.approx(losses(alone), abs=1e-5)


@pytest.mark.plain
def test_rows_written_by_two_are_read_by_three(recipe, alone, tmp_path):
    out = tmp_path / "run"
    run(many(2, *words(recipe, out, "compute.parallel=fsdp")))
    last = out / "checkpoints" / "00000012"
    assert len(list(last.glob("model-*.safetensors"))) == 2
    run(many(3, *words(recipe, out, "compute.parallel=fsdp", "until.steps=18")))
    assert losses(out) == pytest.approx(losses(alone), abs=1e-5)


@pytest.mark.plain
def test_a_flipped_bit_in_the_part_of_another_process(recipe, alone, tmp_path):
    """Both, which read their rows of all parts, go back to the same checkpoint."""
    out = tmp_path / "run"
    run(many(2, *words(recipe, out, "compute.parallel=fsdp")))
    part = out / "checkpoints" / "00000012" / "model-1.safetensors"
    data = bytearray(part.read_bytes())
    data[-1] ^= 1
    part.write_bytes(data)
    said = run(many(2, *words(recipe, out, "compute.parallel=fsdp", "until.steps=18")))
    assert "Checkpoint 00000012 cannot be used: model-1.safetensors does not match" in said
    assert said.count("the run continues from step 6") == 1
    assert losses(out)[-3:] == pytest.approx(losses(alone)[-3:], abs=1e-5)


@pytest.mark.plain
def test_a_killed_worker_is_started_anew(recipe, tmp_path):
    out = tmp_path / "run"
    command = many(2, *words(recipe, out, "until.steps=40", "show.every=2"))
    command.insert(len(MANY), "--max-restarts=2")
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ
    )
    assert started.stdout is not None
    killed, told = False, []
    for line in started.stdout:
        told.append(line)
        if not killed and (out / "checkpoints" / "00000006" / "state.json").is_file():
            children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
            os.kill(int(children[-1]), signal.SIGKILL)
            killed = True
    started.stdout.close()
    assert started.wait() == 0 and killed, "".join(told)
    assert "step 40/40" in "".join(told)
    assert (out / "model" / "config.json").is_file()
