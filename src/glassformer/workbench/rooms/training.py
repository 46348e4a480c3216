"""Training: a run as its folder tells it, and its heads from snapshot to snapshot.

Everything is read from what training writes: recipe.toml, metrics.jsonl and snapshots/. Nothing is
locked or changed, so that a run that still trains does not notice.
"""

import json
import math
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError, GlassformerError
from glassformer.storage import read_regular
from glassformer.tracing import Site, Trace
from glassformer.training.metrics import FILE as METRICS
from glassformer.training.recipe import Recipe
from glassformer.training.recipe_files import ESSENCE, RECIPE
from glassformer.training.snapshots import SAMPLES
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.training import FilmRequest, Mark, TrainingRequest

_MOST_BYTES = 1 << 20  # of a file, read at a time
_MOST_CELLS = 64  # rows and columns of a map; longer texts are pooled
_SHARPEST = 2  # heads of a film that names none


def describe_training(asked: TrainingRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The state of a run, and what is new in its files."""
    del progress  # it is done in milliseconds
    folder = _find_run(asked.model, memory)
    recipe = _read_recipe(folder)
    log = folder / METRICS
    return {
        "folder": str(folder),
        "state": _tell_state(folder),
        "seconds_since": max(0.0, time.time() - log.stat().st_mtime) if log.is_file() else None,
        "task": None if recipe is None else recipe.task,
        "steps": None if recipe is None else recipe.until.steps,
        "epochs": None if recipe is None else recipe.until.epochs,
        "text": None if recipe is None else recipe.snapshots.text or None,
        "snapshots_every": 0 if recipe is None else recipe.snapshots.every,
        "snapshots": [step for step, _ in _list_snapshots(folder)],
        "metrics": _read_new(log, asked.metrics, _as_measurement),
        "samples": _read_new(folder / "snapshots" / SAMPLES, asked.samples, _as_sample),
    }


def show_film(asked: FilmRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The maps of the chosen heads in every snapshot after a step."""
    every = _list_snapshots(_find_run(asked.model, memory))
    last = next((trace for _, path in reversed(every) if (trace := _load(path))), None)
    sites = [] if last is None else [(site.name, list(site.head_numbers)) for site in last]
    chosen = [(each.site, each.head) for each in asked.heads]
    if not chosen and last is not None:
        chosen = _choose_sharpest(last)
    frames, unreadable = [], []
    new = [(step, path) for step, path in every if step > asked.after]
    for n, (step, path) in enumerate(new):
        progress(n / len(new))
        trace = _load(path)
        if trace is None:
            unreadable.append(step)
            continue
        maps = [_draw_map(trace, site, head) for site, head in chosen if _has(trace, site, head)]
        frames.append({"step": step, "maps": maps})
    return {
        "sites": [{"site": site, "heads": heads} for site, heads in sites],
        "chosen": [{"site": site, "head": head} for site, head in chosen],
        "frames": frames,
        "unreadable": unreadable,
    }


def _find_run(name: str, memory: Memory) -> Path:
    folder = memory.path(name)
    if folder is None or not ((folder / ESSENCE).is_file() or (folder / METRICS).is_file()):
        raise ConfigError(
            f"{name} is not a training run. Start the workbench with the folder of one: "
            "glassformer serve RUN."
        )
    return folder


def _read_recipe(folder: Path) -> Recipe | None:
    """The recipe of a run; None where it is missing, or somebody has edited it badly."""
    try:
        return Recipe.from_toml(folder / RECIPE)
    except (GlassformerError, OSError):
        return None


def _tell_state(folder: Path) -> str:
    log, latest = folder / METRICS, folder / "latest" / "config.json"
    if (folder / "model" / "config.json").is_file():
        return "finished"
    if (folder / "bad_batch.json").is_file():
        return "diverged"
    if not log.is_file():
        return "begun"
    # latest/ is saved when a run is interrupted; one that was resumed has logged something since.
    if latest.is_file() and latest.stat().st_mtime >= log.stat().st_mtime:
        return "stopped"
    return "unfinished"


def _read_new(path: Path, mark: Mark | None, convert: Any) -> dict[str, Any]:
    """The whole lines after a mark, or all of them where the file has been rewritten."""
    data = read_regular(path) if path.is_file() else b""
    start = 0 if mark is None else mark.size
    is_anew = mark is None or zlib.crc32(data[:start]) != mark.checksum or start > len(data)
    start = 0 if is_anew else start
    some = data[start : start + _MOST_BYTES]
    end = start + some.rfind(b"\n") + 1  # a line that is still being written is read later
    lines = [convert(values) for values in _parse_lines(data[start:end])]
    return {
        "mark": {"size": end, "checksum": zlib.crc32(data[:end])},
        "is_anew": is_anew,
        "is_more": end > start and b"\n" in data[end:],
        "lines": [line for line in lines if line is not None],
    }


def _parse_lines(data: bytes) -> Iterable[dict[str, Any]]:
    for line in data.splitlines():
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            continue  # half a line that a killed process has left
        if isinstance(values, dict) and isinstance(values.get("step"), int):
            yield values


def _as_measurement(values: dict[str, Any]) -> dict[str, Any] | None:
    epoch = values.get("epoch")
    numbers = {
        name: float(value)
        for name, value in values.items()
        if name not in ("step", "epoch") and isinstance(value, int | float) and math.isfinite(value)
    }
    return {
        "step": values["step"],
        "epoch": epoch if isinstance(epoch, int) else None,
        "values": numbers,
    }


def _as_sample(values: dict[str, Any]) -> dict[str, Any] | None:
    text, sample = values.get("text"), values.get("sample")
    if not isinstance(text, str) or not isinstance(sample, str):
        return None
    return {"step": values["step"], "text": text, "sample": sample}


def _list_snapshots(folder: Path) -> list[tuple[int, Path]]:
    """The traces of a run, by step."""
    found = (folder / "snapshots").glob("*.trace")
    return sorted((int(path.stem), path) for path in found if path.stem.isdecimal())


def _load(path: Path) -> Trace | None:
    try:
        return Trace.load(path)
    except (GlassformerError, OSError):
        return None


def _choose_sharpest(trace: Trace) -> list[tuple[str, int]]:
    """The heads that attend most sharply, each of another site where there are several."""
    best = []
    for site in trace:
        sharpness = site.sharpness().nan_to_num(-1.0)  # NaN: no query has a choice
        head = int(sharpness.argmax())
        best.append((float(sharpness[head]), site.name, site.head_numbers[head]))
    best.sort(key=lambda each: -each[0])
    return [(site, head) for _, site, head in best[:_SHARPEST]]


def _has(trace: Trace, site: str, head: int) -> bool:
    return site in trace.names and head in trace[site].head_numbers


def _draw_map(trace: Trace, name: str, head: int) -> dict[str, Any]:
    site = trace[name]
    is_pooled = max(site.shape[2:]) > _MOST_CELLS
    pooled = site.map(head, size=_MOST_CELLS).maximum if is_pooled else None
    weights = site.weights(head=head) if pooled is None else pooled
    return {
        "site": name,
        "head": head,
        "rows": [] if is_pooled else _label_rows(trace, site),
        "keys": [] if is_pooled else trace.labels(site.keys)[-site.shape[3] :],
        "weights": weights.float().tolist(),
        "is_pooled": is_pooled,
    }


def _label_rows(trace: Trace, site: Site) -> list[str]:
    return trace.labels(site.queries)[-site.shape[2] :]
