"""Runs that are killed, and run folders that are damaged: each ends in the same model, or says why.

python benchmarks/kills.py                                      50 kills, 40 damaged folders
python benchmarks/kills.py --kills 200 --damages 300 --seed 7

A tiny translator is trained by the command line on one core of the CPU. Kills are SIGKILL at random
moments, half of them while something is being written. A damaged folder must resume to the
identical model, and say so where something that it reads was damaged; or be refused with one
sentence, and resume to the identical model once the damage is undone. Anything else is a breach.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_damage import KINDS, LAST, Damage, undo

LETTERS = "abcdefgh"
STOPPED, STEPS, KILLED = 10, 16, 40  # where runs end: a stopped one, a resumed one, a killed one
RECIPE = """
task = "translation"
seed = 11
data = {{ train = [{{ files = ["{source}", "{target}"] }}], valid_every = 10 }}
tokenizer = {{ kind = "words" }}
batches = {{ max_tokens = 100, accumulate = 2 }}
optimizer = {{ kind = "adamw", clip = 1.0 }}
schedule = {{ kind = "constant", lr = 3e-3, warmup = 20 }}
until = {{ steps = {steps} }}
evaluate = {{ every_steps = 5 }}
save = {{ every_steps = 3, keep = 2, average = 3 }}
show = {{ every = 2 }}

[model]
dim = 16
n_layers = 1
n_heads = 2
hidden_dim = 32
max_len = 32
positions = {{ kind = "rotary" }}
norms = {{ place = "pre" }}
dropout = {{ residual = 0.2, embedding = 0.1 }}
"""
NOTICES = ("damaged", "missing", "changed since", "rebuilt", "starts again")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--damages", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines, breaches = hurt(Path(folder), args.kills, args.damages, args.seed)
    print("\n".join(lines))
    return 1 if breaches else 0


def hurt(folder: Path, kills: int, damages: int, seed: int) -> tuple[list[str], list[str]]:
    """All kills and damages; a table of what came of them, and the breaches in it."""
    bench = Bench(folder)
    counts, breaches = kill(bench, kills, random.Random(seed))
    lines = [f"{kills} kills, seed {seed}: {told(counts)}"]
    rows = list(damage(bench, damages, random.Random(seed)))
    for row in rows:
        lines.append(f"  {row.outcome:<24}{row.kind:<18}{row.damage.told}")
        lines += [f"    {line}" for line in row.log.splitlines() if row.outcome == "BREACH"]
    breaches += [row.damage.told for row in rows if row.outcome == "BREACH"]
    lines.append(f"{damages} damages, seed {seed}: {told(Counter(row.outcome for row in rows))}")
    return [*lines, *(f"BREACH: {each}" for each in breaches)], breaches


def told(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))


class Bench:
    """Processes that start with everything imported, and the recipe that they train."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(
            ["glassformer.cli", "glassformer.training", "torch._dynamo"]
        )
        self.recipe = folder / "recipe.toml"
        rng, pairs = random.Random(0), {}
        while len(pairs) < 300:
            word = rng.choices(LETTERS, k=rng.randint(2, 5))
            pairs[" ".join(word)] = " ".join(reversed(word))
        source, target = folder / "words.txt", folder / "backwards.txt"
        source.write_text("".join(f"{each}\n" for each in pairs))
        target.write_text("".join(f"{each}\n" for each in pairs.values()))
        self.recipe.write_text(RECIPE.format(source=source, target=target, steps=KILLED))

    def start(self, out: Path, *words: str) -> Any:
        """A process that trains; what it says is in a file beside its folder."""
        log = out.with_suffix(".log")
        log.write_text("")
        line = ["train", *words, "--resume", "--out", str(out), "--device", "cpu"]
        process = self.context.Process(target=command, args=(line, str(log)))
        process.start()
        return process

    def finish(self, out: Path, *words: str, seconds: float = 120) -> tuple[int | None, str]:
        """Train to the end: the exit code, None where there was none in time, and what was said."""
        process = self.start(out, *words)
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            return None, "no end"
        return process.exitcode, self.log(out)

    def log(self, out: Path) -> str:
        """What a process said, without names of folders, which may say anything."""
        return out.with_suffix(".log").read_text().replace(str(self.folder), "")


def command(words: list[str], log: str) -> None:
    """The command line in this process."""
    import torch

    from glassformer.cli import main as run

    torch.set_num_threads(1)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.exit(run(words))


def kill(bench: Bench, kills: int, rng: random.Random) -> tuple[Counter[str], list[str]]:
    """Kill a run again and again, and see to it that it ends like one that was left alone."""
    counts: Counter[str] = Counter()
    breaches: list[str] = []
    whole, out = bench.folder / "whole", bench.folder / "killed"
    code, log = bench.finish(whole, str(bench.recipe))
    assert code == 0, log
    expected, n = result(whole), 0
    while n < kills or out.exists():
        process = bench.start(out, str(bench.recipe))
        if n < kills:
            wait(process, out, rng)
        else:
            process.join(120)
        if process.is_alive():
            process.kill()
            process.join()
            counts["killed " + moment(out)] += 1
            n += 1
        log = bench.log(out)
        if "Traceback" in log or " is damaged" in log or process.exitcode not in (0, -9):
            breaches.append(f"a kill left something damaged: {log}")
            shutil.rmtree(out)
        elif process.exitcode == 0:
            same = result(out) == expected
            counts["runs that ended " + ("identically" if same else "DIFFERENTLY")] += 1
            breaches += [] if same else ["a killed run ended with another model"]
            shutil.rmtree(out)
    return counts, breaches


def wait(process: Any, out: Path, rng: random.Random) -> None:
    """Until a moment to kill at: soon, some steps later, or as soon as something is written."""
    when = rng.choice(["soon", "step", "writing", "writing"])
    if when == "soon":
        process.join(rng.uniform(0, 1))
        return
    step = last_step(out) + rng.randint(1, 9)
    while process.is_alive() and last_step(out) < step:
        process.join(0.002)
    while when == "writing" and process.is_alive() and not unfinished(out):
        pass
    process.join(rng.uniform(0, 0.02))


def last_step(out: Path) -> int:
    try:
        lines = (out / "metrics.jsonl").read_bytes().split(b"\n")
        return json.loads(lines[-2])["step"]
    except (OSError, IndexError):
        return 0


def unfinished(out: Path) -> bool:
    return any(out.glob(".*.unfinished")) or any(out.glob("*/.*.unfinished"))


def moment(out: Path) -> str:
    if not (out / "metrics.jsonl").exists():
        return "before the first step"
    return "while writing" if unfinished(out) else "between two writes"


def result(out: Path) -> dict[str, Any]:
    """What a run ended with: the bytes of its models and last checkpoint, and its scores."""
    names = ("model/model.safetensors", "best/model.safetensors")
    last = max((out / "checkpoints").glob("[0-9]" * 8), default=out)
    files = [out / name for name in names]
    files += [last / f"{group}-0.safetensors" for group in ("model", "optimizer")]
    scores = {}
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines]
    for line in lines:
        found = {k: v for k, v in line.items() if k.startswith(("valid_", "final_"))}
        if found and not (line["step"] == STOPPED and "final_loss" in found):
            scores[line["step"], min(found)] = found
    kinds = [(line["step"], *sorted(line)) for line in lines]
    return {
        "files": {str(p.relative_to(out)): p.read_bytes() if p.exists() else None for p in files},
        "scores": scores,
        "ordered": steps == sorted(steps) and len(kinds) == len(set(kinds)),
    }


@dataclass(frozen=True)
class Row:
    """One damaged folder, and what came of it."""

    kind: str
    damage: Damage
    outcome: str
    log: str


def damage(bench: Bench, n: int, rng: random.Random) -> Any:
    """Damage copies of one stopped run, and resume each."""
    stopped = bench.folder / "stopped"
    code, log = bench.finish(stopped, str(bench.recipe), "--set", f"until.steps={STOPPED}")
    assert code == 0 and (stopped / "checkpoints" / LAST).is_dir(), log
    more = ("--set", f"until.steps={STEPS}")
    resumed = bench.folder / "resumed"
    shutil.copytree(stopped, resumed)
    code, log = bench.finish(resumed, *more)
    assert code == 0 and not noticed(log), log
    expected = result(resumed)
    kinds = []
    while len(kinds) < n:  # every kind before any comes twice
        kinds += rng.sample(sorted(KINDS), len(KINDS))
    for name in kinds[:n]:
        out = bench.folder / "hurt"
        shutil.copytree(stopped, out)
        done = KINDS[name](out, rng)
        is_named = rng.random() < 0.3  # a recipe that is named replaces the one in the folder
        words = (str(bench.recipe), *more) if is_named else more
        code, log = bench.finish(out, *words)
        outcome = judge(out, done, code, log, expected, is_named=is_named)
        if outcome == "refused":
            undo(out, stopped, done)
            code, again = bench.finish(out, *words)
            if code != 0 or result(out) != expected:
                outcome, log = "BREACH", f"{log}\nafter the damage was undone: {again}"
        yield Row(name, done, outcome, log)
        shutil.rmtree(out)


def judge(
    out: Path, done: Damage, code: int | None, log: str, expected: Any, *, is_named: bool
) -> str:
    """What came of a damaged folder."""
    if code is None or "Traceback" in log or code not in (0, 2):
        return "BREACH"
    if code == 2:
        sentences = [line for line in log.splitlines() if line.startswith("glassformer: ")]
        return "refused" if len(sentences) == 1 else "BREACH"
    found = result(out)
    best = expected["files"]["best/model.safetensors"]
    if noticed(log) and found["files"]["best/model.safetensors"] is None:
        found["files"]["best/model.safetensors"] = best  # it said that there is none any more
    if noticed(log) and done.paths == (Path("metrics.jsonl"),):
        # Measurements that were cut off cannot be made again; those that are left must agree.
        kept = {k: v for k, v in expected["scores"].items() if k in found["scores"]}
        expected = {**expected, "scores": kept}
    if found != expected:
        return "BREACH"
    if noticed(log):
        return "said so, and identical"
    named = is_named and done.paths == (Path("recipe.toml"),)
    return "BREACH" if done.must_notice and not named else "identical"


def noticed(log: str) -> bool:
    return any(word in log for word in NOTICES)


if __name__ == "__main__":
    sys.exit(main())
