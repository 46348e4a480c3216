"""FlashAttention on a machine with two memories, which counts what moves between them."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.functional import attention
from glassformer.render.chart import Axis, Bars, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import fit_exponent, largest_difference
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    lengths: tuple[int, ...]
    rows: tuple[int, ...]  # queries of a tile, at the longest length


_SIZES = {
    "quick": _Size((128, 256, 512), (16, 32, 64, 128)),
    "full": _Size((128, 256, 512, 1024, 2048), (16, 32, 64, 128, 256)),
}
_WIDTH, _ROWS, _COLUMNS = 64, 128, 128
WAYS = ("written", "tiled")


class Machine:
    """Counts the numbers that pass between slow and fast memory, and the operations.

    A product reads each operand once and keeps its result in fast memory, as if that were large
    enough for any product: the written-out form could not move less.
    """

    def __init__(self) -> None:
        self.moved = 0
        self.operations = 0

    def read(self, x: Tensor) -> Tensor:
        """From slow memory to fast memory."""
        self.moved += x.numel()
        return x

    def write(self, x: Tensor) -> Tensor:
        """From fast memory to slow memory."""
        self.moved += x.numel()
        return x

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """A matrix product in fast memory."""
        self.operations += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        return a @ b


class _Run(NamedTuple):
    """What a way computes, what it keeps between the passes, and what that costs."""

    results: tuple[Tensor, Tensor, Tensor, Tensor]  # out, dq, dk, dv
    kept: int
    forward: int  # numbers moved
    backward: int
    operations: int


def run_written_out(q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> _Run:
    """Each step reads its operands from slow memory and writes its result there."""
    machine = Machine()
    read, write, multiply = machine.read, machine.write, machine.multiply
    scale = q.shape[-1] ** -0.5
    scores = write(multiply(read(q), read(k).T) * scale)
    weights = write(read(scores).softmax(-1))
    out = write(multiply(read(weights), read(v)))
    forward = machine.moved
    dv = write(multiply(read(weights).T, read(grad)))
    dweights = write(multiply(read(grad), read(v).T))
    w, dw = read(weights), read(dweights)
    dscores = write(w * (dw - (w * dw).sum(-1, keepdim=True)) * scale)
    dq = write(multiply(read(dscores), read(k)))
    dk = write(multiply(read(dscores).T, read(q)))
    backward = machine.moved - forward
    return _Run((out, dq, dk, dv), weights.numel(), forward, backward, machine.operations)


def run_tiled(q: Tensor, k: Tensor, v: Tensor, grad: Tensor, *, rows: int) -> _Run:
    """Tiles in fast memory, online softmax, recomputed weights (Dao et al. 2022)."""
    machine = Machine()
    read, write, multiply = machine.read, machine.write, machine.multiply
    scale = q.shape[-1] ** -0.5
    outs, sums = [], []
    blocks = list(zip(k.split(_COLUMNS), v.split(_COLUMNS), strict=True))
    for q_rows in map(read, q.split(rows)):
        top = torch.full_like(q_rows[:, 0], -math.inf)
        total, out = torch.zeros_like(top), torch.zeros_like(q_rows)
        for keys, values in blocks:
            scores = multiply(q_rows, read(keys).T) * scale
            higher = torch.maximum(top, scores.amax(-1))
            shrink, weights = (top - higher).exp(), (scores - higher[:, None]).exp()
            total = total * shrink + weights.sum(-1)
            out = out * shrink[:, None] + multiply(weights, read(values))
            top = higher
        outs.append(write(out / total[:, None]))
        sums.append(write(top + total.log()))
    out, lse = torch.cat(outs), torch.cat(sums)
    forward = machine.moved
    drift = write((read(grad) * read(out)).sum(-1))  # Σ_j weight_j · dweight_j
    dq, dks, dvs = torch.zeros_like(q), [], []
    for keys, values in ((read(keys), read(values)) for keys, values in blocks):
        dk, dv = torch.zeros_like(keys), torch.zeros_like(values)
        for start in range(0, len(q), rows):
            own = slice(start, start + rows)
            q_rows, g = read(q[own]), read(grad[own])
            scores = multiply(q_rows, keys.T) * scale  # once more, instead of keeping it
            weights = (scores - read(lse[own])[:, None]).exp()
            dv += multiply(weights.T, g)
            dscores = weights * (multiply(g, values.T) - read(drift[own])[:, None]) * scale
            dq[own] = write(read(dq[own]) + multiply(dscores, keys))
            dk += multiply(dscores.T, q_rows)
        dks.append(write(dk))
        dvs.append(write(dv))
    backward = machine.moved - forward
    results = (out, dq, torch.cat(dks), torch.cat(dvs))
    return _Run(results, out.numel() + lse.numel(), forward, backward, machine.operations)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Numbers moved, kept and computed, by length and by the size of a tile."""
    lengths, rows = _SIZES[size]
    generator = torch.Generator().manual_seed(seed)
    costs = {f"{what}_{way}": [] for what in ("moved", "kept", "operations") for way in WAYS}
    numbers: Numbers = {
        "lengths": list(lengths),
        "rows": list(rows),
        "width": _WIDTH,
        "moved_by_rows": [],
        "fast": [],
        "difference": 0.0,
        **costs,
    }
    for step, _ in iterate_with_progress([*lengths, *(-n for n in rows)], progress, numbers):
        L = step if step > 0 else lengths[-1]
        q, k, v, grad = torch.randn(4, L, _WIDTH, generator=generator, dtype=torch.float64).unbind()
        tiled = run_tiled(q, k, v, grad, rows=_ROWS if step > 0 else -step)
        exact = _define(q, k, v, grad)
        runs = {"tiled": tiled}
        if step > 0:
            runs["written"] = run_written_out(q, k, v, grad)
            for way, run in runs.items():
                costs[f"moved_{way}"].append(run.forward + run.backward)
                costs[f"kept_{way}"].append(run.kept)
                costs[f"operations_{way}"].append(run.operations)
        else:
            numbers["moved_by_rows"].append(tiled.forward)
            numbers["fast"].append(_count_fast(-step))
        far = (
            largest_difference(found, right)
            for run in runs.values()
            for found, right in zip(run.results, exact, strict=True)
        )
        numbers["difference"] = max(numbers["difference"], *far)
    return numbers


def _count_fast(rows: int) -> int:
    """The numbers of one step in fast memory: queries, output, keys, values, scores, sums."""
    return 2 * rows * _WIDTH + 2 * _COLUMNS * _WIDTH + rows * _COLUMNS + 2 * rows


def _define(q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
    leaves = [x[None, None].clone().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        out = attention(*leaves, backend="reference")
    grads = torch.autograd.grad(out, leaves, grad[None, None])
    return [x[0, 0] for x in (out, *grads)]


def judge(numbers: Numbers) -> Verdict:
    lengths, last = numbers["lengths"], numbers["lengths"][-1]
    saved = numbers["moved_written"][-1] / numbers["moved_tiled"][-1]
    more = numbers["operations_tiled"][-1] / numbers["operations_written"][-1]
    growth = {way: fit_exponent(lengths, numbers[f"kept_{way}"]) for way in WAYS}
    by_rows = fit_exponent(numbers["rows"], numbers["moved_by_rows"])
    return Verdict.of(
        # float64 leaves about 1e-13; a wrong formula would be off by 0.01 and more.
        Check(
            "traffic",
            saved > 2 and numbers["difference"] < 1e-9,
            {"saved": saved, "length": last, "difference": numbers["difference"]},
        ),
        Check("kept", growth["written"] > 1.9 and growth["tiled"] < 1.1, dict(growth)),
        # Two products forwards and four backwards; the scores once more are the seventh.
        Check("arithmetic", abs(more - 7 / 6) < 0.01, {"more": more}),
        Check("tiles", by_rows < -0.7, {"exponent": by_rows}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    def by_length(what: str) -> Lines:
        return Lines(
            title=texts(what),
            x=Axis(label=texts("length"), log=True),
            y=Axis(label=texts(f"{what}_axis"), log=True),
            places=tuple(numbers["lengths"]),
            series=tuple(
                Series(name=texts(way), values=_fill(numbers[f"{what}_{way}"], numbers["lengths"]))
                for way in WAYS
            ),
        )

    by_rows = Bars(
        title=texts("by_rows", length=numbers["lengths"][-1]),
        y=Axis(label=texts("moved_axis"), least=0.0),
        names=tuple(str(rows) for rows in numbers["rows"]),
        series=(
            Series(name=texts("tiled"), values=_fill(numbers["moved_by_rows"], numbers["rows"])),
        ),
    )
    return Chart((by_length("moved"), by_length("kept"), by_rows))


def _fill(values: list[int], places: list[int]) -> tuple[int | None, ...]:
    return (*values, *[None] * (len(places) - len(values)))


EXPERIMENT = Experiment(
    name="traffic",
    look_at=(
        "school/lab/experiments/traffic.py:run_tiled",
        "functional/backends/streaming.py:forward",
        "functional/backends/streaming_gradients.py:first_gradients",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
