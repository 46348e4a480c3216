"""Sinusoidal positions: similarity depends on distance alone, and a shift is a rotation."""

from typing import NamedTuple

import torch

from glassformer.functional import sinusoidal
from glassformer.render.chart import Axis, Cells, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    dim: int
    places: int
    far: int


_SIZES = {"quick": _Size(32, 64, 2_000), "full": _Size(128, 128, 100_000)}
_SHIFTS = (1, 5, 40)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Dot products by distance, from near and far; and a matrix fitted to each shift."""
    del seed
    dim, n, far = _SIZES[size]
    table = sinusoidal(n, dim, dtype=torch.float64)
    similarity = table @ table.T / (dim / 2)  # a place with itself: sin² + cos² of each wave
    spread = max(float(similarity.diagonal(i).std()) for i in range(1, n - 1))
    found: Numbers = {
        "dim": dim,
        "places": n,
        "far": far,
        "table": ((table.T + 1) / 2).tolist(),
        "similarity": similarity[0].tolist(),
        "between": float(
            (
                _similarity(torch.tensor([10.5]), 10, dim)
                + _similarity(torch.tensor([10.5]), 11, dim)
            )
            / 2
        ),
        "spread": spread,
        "forward_back": float((similarity - similarity.T).abs().max()),
        "distinct": float((similarity - torch.eye(n)).max()),
        "shift_errors": {},
    }
    for shift, _ in iterate_with_progress(_SHIFTS, progress, found):
        # Fitted on the first places alone, used on places a thousand times further on.
        turned = sinusoidal(n + shift, dim, dtype=torch.float64)[shift:]
        matrix = torch.linalg.lstsq(table, turned, driver="gelsd").solution
        there = torch.arange(far, far + n, dtype=torch.float64)
        start, end = (sinusoidal(there + by, dim, dtype=torch.float64) for by in (0, shift))
        found["shift_errors"][str(shift)] = float((_rotation(shift, dim, start) - end).abs().max())
        found.setdefault("fitted", {})[str(shift)] = float((table @ matrix - turned).abs().max())
    return found


def _similarity(places: torch.Tensor, other: int, dim: int) -> torch.Tensor:
    here = sinusoidal(places.double(), dim, dtype=torch.float64)
    return here @ sinusoidal(torch.tensor([float(other)]), dim, dtype=torch.float64).T / (dim / 2)


def _rotation(shift: int, dim: int, start: torch.Tensor) -> torch.Tensor:
    """Each pair (sin, cos) turned by shift · frequency: the same matrix whatever the place."""
    frequencies = 10000.0 ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    sin, cos = start[:, 0::2], start[:, 1::2]
    a, b = (shift * frequencies).sin(), (shift * frequencies).cos()
    return torch.stack([sin * b + cos * a, cos * b - sin * a], -1).flatten(-2)


def judge(numbers: Numbers) -> Verdict:
    shifts = max(numbers["shift_errors"].values())
    fitted = max(numbers["fitted"].values())
    near, half = numbers["similarity"][1], numbers["similarity"][numbers["places"] // 2]
    rises = sum(
        b > a for a, b in zip(numbers["similarity"], numbers["similarity"][1:], strict=False)
    )
    return Verdict.of(
        # Angles of 100,000 are known to 1e-11 in float64.
        Check("shift", shifts < 1e-9, {"error": shifts, "far": numbers["far"]}),
        # A fit by least squares of a nearly singular table: looser, still no chance.
        Check("fitted", fitted < 1e-6, {"error": fitted}),
        Check("distance", numbers["spread"] < 1e-12, {"spread": numbers["spread"]}),
        # Near is more alike than far, by a good deal; that it falls at every step is not claimed.
        Check("decay", near - half > 0.1, {"near": near, "half": half, "rises": rises}),
        Check("symmetric", numbers["forward_back"] < 1e-12, {"apart": numbers["forward_back"]}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    n = numbers["places"]
    return Chart(
        (
            Cells(
                title=texts("table"),
                rows=texts("coordinate"),
                columns=texts("place"),
                values=tuple(tuple(row) for row in numbers["table"]),
            ),
            Lines(
                title=texts("similarity"),
                x=Axis(label=texts("distance")),
                y=Axis(label=texts("dot")),
                places=tuple(float(i) for i in range(n)),
                series=(Series(name=texts("dot"), values=tuple(numbers["similarity"])),),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="positions-picture",
    look_at=(
        "functional/positions/sinusoidal.py:sinusoidal",
        "layers/embedding.py:SinusoidalPositions",
        "functional/positions/rotary.py:rotate",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
