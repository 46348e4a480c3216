"""Damaged and crafted files for everything that reads files: a sentence, or a valid value.

    python benchmarks/hostile.py --cases 3000 --seed 1
    python benchmarks/hostile.py --specials

The second puts a named pipe, a device, a folder or a link in the place of every file in turn.
Each case is one sample, damaged, and read in a process of its own with 10 seconds of CPU and 1 GiB
beyond what Python and PyTorch take. It must end in one GlassformerError, or in a value that is
equal to the undamaged one or a valid other one. Everything else is a breach, and the exit status.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "COLUMNS": "100"}

import torch

import glassformer as gf
from hostile_damage import SPECIALS, Damaged, Special, damage
from hostile_subjects import SUBJECTS, choose

CPU_SECONDS, MOST_MEMORY, WALL_SECONDS = 10, 1 << 30, 150
BREACHES = ("traceback", "hang", "memory", "crash", "wrong value", "outside")


@dataclass(frozen=True)
class Sample:
    files: dict[str, bytes]
    value: Any


@dataclass(frozen=True)
class Trial:
    """What is read in one case: a subject, and its damage; None for a decompression bomb."""

    subject: str
    damaged: Damaged | None


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cases", type=int, default=3000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--only", help="subjects whose name begins so")
    options.add_argument("--case", type=int, help="one case alone, with what it says")
    options.add_argument("--specials", action="store_true", help="a special file for every file")
    given = options.parse_args()
    started = time.monotonic()
    seed = None if given.specials else given.seed
    cases = None if given.specials else list(range(given.cases))
    if given.case is not None:
        cases = [given.case]
    results = run(cases, seed, given.jobs, given.only, show=given.case is None)
    if given.case is not None:
        print(json.dumps(results[0], indent=1, ensure_ascii=False))
    return report(results, time.monotonic() - started)


def run(
    cases: list[int] | None,
    seed: int | None,
    jobs: int = 1,
    only: str | None = None,
    *,
    show: bool = False,
) -> list[dict[str, Any]]:
    """The results of cases, in any order: drawn from a seed, or without one all special files."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        samples = make_samples(root / "samples", only)
        specials = list_specials(samples) if seed is None else []
        cases = list(range(len(specials))) if cases is None else cases

        def trial(case: int) -> Trial:
            return specials[case] if seed is None else draw_trial(case, seed, only, samples)

        ends = []
        for job in range(jobs):
            end, other = os.pipe()
            if os.fork() == 0:
                os.close(end)
                _lane(cases[job::jobs], trial, samples, root / f"lane-{job}", other)
            os.close(other)
            ends.append(end)
        results = _collected(ends, len(cases), show=show)
    if len(results) < len(cases):
        raise SystemExit(f"{len(cases) - len(results)} cases were not run: a lane broke off.")
    return results


def make_samples(root: Path, only: str | None) -> dict[str, Sample]:
    """An undamaged sample of every subject, and its value."""
    samples = {}
    for name, subject in SUBJECTS.items():
        if only is not None and not name.startswith(only):
            continue
        folder = root / name / "inside"
        folder.mkdir(parents=True)
        subject.make(folder)
        there = (path for path in sorted(folder.rglob("*")) if path.is_file())
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in there}
        is_bomb = name.startswith("bomb")
        samples[name] = Sample(files, None if is_bomb else subject.load(folder))
    return samples


def draw_trial(case: int, seed: int, only: str | None, samples: dict[str, Sample]) -> Trial:
    """A subject by its weight, damaged at random; the same case and seed give the same trial."""
    rng = random.Random(f"{seed}/{case}")
    name = choose(rng, only)
    bomb = name.startswith("bomb")
    return Trial(name, None if bomb else damage(samples[name].files, rng))


def list_specials(samples: dict[str, Sample]) -> list[Trial]:
    """Every file of every subject, with each kind of special file in its place."""
    return [
        Trial(name, Damaged({**sample.files, file: kind}, f"{file}: {kind} instead; ", None))
        for name, sample in samples.items()
        if not name.startswith("bomb")
        for file in sample.files
        for kind in SPECIALS
    ]


def _lane(
    cases: list[int],
    trial: Callable[[int], Trial],
    samples: dict[str, Sample],
    root: Path,
    out: int,
) -> None:
    """One case after another, each in a fork of this process; never returns."""
    try:
        with os.fdopen(out, "w") as stream:
            for case in cases:
                tried = trial(case)
                found = _try(tried, samples[tried.subject], root)
                stream.write(json.dumps({"case": case, **found}) + "\n")
                stream.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _try(trial: Trial, sample: Sample, root: Path) -> dict[str, Any]:
    name, damaged = trial.subject, trial.damaged
    subject = SUBJECTS[name]
    files: dict[str, Any] = sample.files if damaged is None else damaged.files
    if subject.sign is not None:
        files = subject.sign(files)
    shutil.rmtree(root, ignore_errors=True)
    inside = root / "inside"
    inside.mkdir(parents=True)
    (root / "outside" / "home").mkdir(parents=True)
    (root / "outside" / "secret").write_text("not yours\n")
    _write(files, inside)
    before = _stamps(root / "outside"), _stamps(inside)
    found: dict[str, Any] = {"subject": name}
    found["damage"] = "a bomb" if damaged is None else damaged.note
    found |= _forked(name, inside, sample, None if damaged is None else damaged.n_bytes)
    after = _stamps(root / "outside"), _stamps(inside)
    if before[0] != after[0] or (before[1] != after[1] and not subject.writes):
        found |= {"result": "outside", "why": f"{before} became {after}"[:500]}
    return found


def _write(files: dict[str, Any], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, Special):
            path.write_bytes(content)
        elif content.kind == "fifo":
            os.mkfifo(path)
        elif content.kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(path.name if content.target == "loop" else content.target)


def _stamps(folder: Path) -> list[Any]:
    found = []
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        found.append([path.name, state.st_mode, state.st_size, state.st_mtime_ns])
    return found


def _forked(name: str, folder: Path, sample: Sample, n_bytes: int | None) -> dict[str, Any]:
    end, other = os.pipe()
    errors = folder.parent / "stderr"
    child = os.fork()
    if child == 0:
        os.close(end)
        _limit(errors, folder)
        with os.fdopen(other, "w") as stream:
            json.dump(_read(name, folder, sample, n_bytes), stream)
        os._exit(0)
    os.close(other)
    status = _waited(child)
    with os.fdopen(end) as stream:
        said = stream.read()
    noise = errors.read_text(errors="replace") if errors.is_file() else ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        slow = number in (signal.SIGXCPU, signal.SIGKILL)
        memory = "memory allocation of" in noise
        result = "hang" if slow else "memory" if memory else "crash"
        return {"result": result, "why": f"signal {number} {noise[-600:]}"}
    if not said:
        return {"result": "crash", "why": f"status {status} {noise[-600:]}"}
    return {**json.loads(said), "panic": "panicked at" in noise}


def _limit(errors: Path, folder: Path) -> None:
    handle = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 2)
    os.chdir(folder)
    os.environ["HOME"] = str(folder.parent / "outside" / "home")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))


def _read(name: str, folder: Path, sample: Sample, n_bytes: int | None) -> dict[str, Any]:
    subject = SUBJECTS[name]
    warnings.simplefilter("error")
    try:
        value = subject.load(folder)
    except gf.GlassformerError as error:
        said = str(error)
        if "\n" in said or len(said) > 2000 or not said:
            return {"result": "wrong value", "why": f"an odd sentence: {said[:500]!r}"}
        return {"result": "refused", "why": said[:500]}
    except MemoryError:
        return {"result": "memory", "why": traceback.format_exc()[-1500:]}
    except BaseException:
        return {"result": "traceback", "why": traceback.format_exc()[-1500:]}
    try:
        return {"result": subject.check(value, sample.value, n_bytes), "why": ""}
    except BaseException:
        return {"result": "wrong value", "why": traceback.format_exc()[-800:]}


def _waited(child: int) -> int:
    end = time.monotonic() + WALL_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _collected(ends: list[int], n: int, *, show: bool) -> list[dict[str, Any]]:
    import selectors

    results: list[dict[str, Any]] = []
    left = selectors.DefaultSelector()
    for end in ends:
        left.register(os.fdopen(end), selectors.EVENT_READ)
    while left.get_map():
        for key, _ in left.select():
            line = key.fileobj.readline()
            if not line:
                left.unregister(key.fileobj)
                key.fileobj.close()
                continue
            results.append(json.loads(line))
            if show and results[-1]["result"] in BREACHES:
                print(json.dumps(results[-1], ensure_ascii=False), flush=True)
            if show and len(results) % 250 == 0:
                print(f"… {len(results)} of {n}", flush=True)
    for _ in ends:
        os.wait()
    return results


def report(results: list[dict[str, Any]], seconds: float) -> int:
    """A table of what became of the cases; 1 where there is a breach, else 0."""
    columns = ("refused", "equal", "other", *BREACHES)
    by_subject: dict[str, Counter[str]] = {}
    for each in results:
        by_subject.setdefault(each["subject"], Counter())[each["result"]] += 1
    total = sum(by_subject.values(), Counter())
    print(f"| {'read as':<22} | cases | {' | '.join(columns)} |")
    print(f"|---|{'---:|' * (len(columns) + 1)}")
    for name in [*(n for n in SUBJECTS if n in by_subject), "all"]:
        counted = total if name == "all" else by_subject[name]
        cells = " | ".join(str(counted[column]) for column in columns)
        print(f"| {name:<22} | {sum(counted.values())} | {cells} |")
    accepted = total["equal"] + total["other"]
    panics = sum(bool(each.get("panic")) for each in results)
    breaches = sum(total[column] for column in BREACHES)
    print(f"\n{len(results)} cases in {seconds:.0f} s: {total['refused']} refused in a sentence, "
          f"{accepted} accepted ({total['equal']} equal, {total['other']} valid others), "
          f"{breaches} breaches; the tokenizer library printed a panic in {panics}.")  # fmt: skip
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
