"""A sweep that can be continued: the cells that are done, in a small file beside it."""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.sweep_result import Sweep, as_tensor, read_file, write_file
from glassformer.errors import TraceError
from glassformer.paths import user_path
from glassformer.tracing import Trace
from glassformer.tracing.variants import Variants

_SECONDS = 2.0  # between two writes: a crash costs no more
_NEAR = 1e-3  # of the clean and the corrupted value: other kernels round otherwise


class SweepFile:
    """Reads and writes what is done; only a file of the same sweep is continued."""

    def __init__(self, path: str | Path, same: dict[str, Any]) -> None:
        self.path, self.same = user_path(path, TraceError), same
        self.written = time.monotonic()

    def read(self, empty: Sweep) -> Float[Tensor, "R C"]:
        """The values so far; NaN where a cell is still to be done."""
        if not self.path.exists():
            return empty.values.clone()
        plain = read_file(self.path)
        if not isinstance(found := plain.get("resume"), dict):
            raise TraceError(f"{self.path} holds a finished sweep. Name another file.")
        expected = {**self.same, **_describe(empty)}
        given = {**found, **{name: plain.get(name) for name in _describe(empty)}}
        differing = [name for name in expected if given.get(name) != expected[name]]
        scale = abs(empty.clean - empty.corrupted)
        for name in ("clean", "corrupted"):
            value = plain.get(name)
            if not isinstance(value, float) or abs(value - getattr(empty, name)) > _NEAR * scale:
                differing.append(f"{name} value")
        if differing:
            raise TraceError(
                f"{self.path} is of another sweep: {_join(differing)} differ. Name another file."
            )
        return as_tensor(plain["values"])

    def write(self, sweep: Sweep, *, is_finished: bool = False, is_last: bool = False) -> None:
        """Write what is done, every few seconds and at the end."""
        now = time.monotonic()
        if is_finished or is_last or now - self.written > _SECONDS:
            same = {**self.same, "is_finished": is_finished}
            write_file(self.path, {"resume": same, **sweep.as_file()})
            self.written = now


def _describe(sweep: Sweep) -> dict[str, Any]:
    return {
        "over": sweep.over,
        "measured": sweep.measured,
        "rows": sweep.rows,
        "columns": sweep.columns,
    }


def describe_run(variants: Variants, clean: Trace, position: int) -> dict[str, Any]:
    """What must be the same for a sweep to be continued: texts, sizes of the model, position."""
    sizes = {
        "kind": type(variants.model).__name__,
        "parameters": sum(p.numel() for p in variants.model.parameters()),
        "layers": variants.n_layers,
        "dim": variants.stream.start.shape[-1],
    }
    return {
        "texts": _hash_texts([clean, variants.trace]),
        "model": sizes,
        "stack": variants.stack,
        "position": position,
    }


def _hash_texts(traces: Sequence[Trace]) -> str:
    plain = [{n: text.tokens.tolist() for n, text in t.run.texts.items()} for t in traces]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def count_done(values: Float[Tensor, "R C"]) -> int:
    """How many cells have a value."""
    return int(torch.isfinite(values).sum())
