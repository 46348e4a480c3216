"""Fused attention against the written-out one: the same numbers, in less time and memory."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.functional import attention
from glassformer.functional.dispatch import Name
from glassformer.render.chart import Chart
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import (
    fit_exponent,
    largest_difference,
    measure_peak_bytes,
    measure_seconds,
)
from glassformer.school.lab.panels import cost_by_length
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    lengths: tuple[int, ...]
    repeats: int


_SIZES = {
    "quick": _Size((128, 256, 512, 1024), 3),
    "full": _Size((128, 256, 512, 1024, 2048), 5),
}
_HEADS, _WIDTH = 4, 32
_WAYS: dict[str, Name] = {"written": "reference", "fused": "sdpa"}


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Time, peak memory and distance from float64, by length."""
    del seed
    lengths, repeats = _SIZES[size]
    found: dict[str, list[float]] = {
        f"{what}_{way}": [] for what in ("seconds", "bytes", "error") for way in _WAYS
    }
    numbers: Numbers = {"lengths": list(lengths), "heads": _HEADS, "width": _WIDTH, **found}
    for L, _ in iterate_with_progress(lengths, progress, numbers):
        q, k, v = torch.randn(3, 1, _HEADS, L, _WIDTH).unbind(0)

        def run_with(
            backend: Name, operands: tuple[Tensor, ...] = (q, k, v)
        ) -> Callable[[], Tensor]:
            return lambda: attention(*operands, backend=backend)

        ways = {name: run_with(backend) for name, backend in _WAYS.items()}
        taken = measure_seconds(ways, repeats=repeats, at_least=2e-3)
        # A few rows are enough to compare with float64, which would need L² of twice the size.
        few = q[:, :, :64].double()
        exact = attention(few, k.double(), v.double(), backend="reference")
        for name, run in ways.items():
            found[f"seconds_{name}"].append(taken[name])
            found[f"bytes_{name}"].append(measure_peak_bytes(run))
            found[f"error_{name}"].append(largest_difference(run()[:, :, :64], exact))
    return numbers


def judge(numbers: Numbers) -> Verdict:
    last = numbers["lengths"][-1]
    written = fit_exponent(numbers["lengths"], numbers["bytes_written"])
    fused = fit_exponent(numbers["lengths"], numbers["bytes_fused"])
    error = max(numbers["error_fused"]), max(numbers["error_written"])
    saved = numbers["bytes_written"][-1] / numbers["bytes_fused"][-1]
    quicker = numbers["seconds_written"][-1] / numbers["seconds_fused"][-1]
    return Verdict.of(
        # The same function: no further from float64 than twice the plain form, plus a rounding.
        Check(
            "equal",
            error[0] <= 2 * error[1] + 1e-7,
            {"fused": error[0], "written": error[1]},
        ),
        # Bytes are counted: the matrix is L², the blocks of the fused kernel are not.
        Check(
            "memory",
            written > 1.8 and fused < 1.4,
            {"written": written, "fused": fused, "saved": saved, "length": last},
        ),
        Check("quicker", quicker > 1, {"times": quicker, "length": last}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    return cost_by_length(numbers, texts, _WAYS)


EXPERIMENT = Experiment(
    name="fused",
    look_at=(
        "functional/reference.py:attention",
        "functional/backends/sdpa.py:attend",
        "functional/backends/streaming.py:attend",
        "functional/dispatch.py:explain",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
