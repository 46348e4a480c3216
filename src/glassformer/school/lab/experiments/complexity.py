"""What grows with length, and how: attention itself against the linear layers around it."""

from typing import NamedTuple

import torch

from glassformer.functional import attention
from glassformer.layers import FeedForward, SelfAttention
from glassformer.render.chart import Chart
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import fit_exponent, measure_peak_bytes, measure_seconds
from glassformer.school.lab.panels import cost_by_length
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    lengths: tuple[int, ...]
    repeats: int


_SIZES = {
    "quick": _Size((64, 128, 256, 512), 3),
    "full": _Size((64, 128, 256, 512, 1024, 2048), 7),
}
_DIM, _HEADS = 128, 4
_LAST = 3  # lengths that exponents are fitted to: short ones mostly measure the cost of calls


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Time and peak memory of both parts of a block, by length, for one text."""
    del seed
    lengths, repeats = _SIZES[size]
    projections, network = SelfAttention(_DIM, _HEADS), FeedForward(_DIM, 4 * _DIM)
    found: dict[str, list[float]] = {
        f"{what}_{part}": [] for what in ("seconds", "bytes") for part in ("attention", "linear")
    }
    numbers: Numbers = {"lengths": list(lengths), "dim": _DIM, "heads": _HEADS, **found}
    with torch.no_grad():
        for L, _ in iterate_with_progress(lengths, progress, numbers):
            x = torch.randn(1, L, _DIM)
            q, k, v = torch.randn(3, 1, _HEADS, L, _DIM // _HEADS).unbind(0)

            def linear(x: torch.Tensor = x) -> torch.Tensor:
                return network(projections.out(projections.qkv(x)[..., :_DIM]))

            def attend(operands: tuple[torch.Tensor, ...] = (q, k, v)) -> torch.Tensor:
                return attention(*operands, backend="reference")

            taken = measure_seconds(
                {"attention": attend, "linear": linear}, repeats=repeats, at_least=2e-3
            )
            for part, way in (("attention", attend), ("linear", linear)):
                found[f"seconds_{part}"].append(taken[part])
                found[f"bytes_{part}"].append(measure_peak_bytes(way))
    return numbers


def judge(numbers: Numbers) -> Verdict:
    lengths = numbers["lengths"][-_LAST:]

    def growth(what: str) -> float:
        return fit_exponent(lengths, numbers[what][-_LAST:])

    bytes_attention, bytes_linear = growth("bytes_attention"), growth("bytes_linear")
    seconds_attention, seconds_linear = growth("seconds_attention"), growth("seconds_linear")
    return Verdict.of(
        # Bytes are counted, not timed: L² plus a little that grows as L.
        Check("bytes", 1.8 <= bytes_attention <= 2.1, {"exponent": bytes_attention}),
        Check("linear_bytes", 0.9 <= bytes_linear <= 1.1, {"exponent": bytes_linear}),
        # Times have wider bounds: fresh memory and caches that overflow push up, calls that cost
        # the same for every length push down.
        Check("seconds", 1.5 <= seconds_attention <= 2.8, {"exponent": seconds_attention}),
        Check("linear_seconds", 0.6 <= seconds_linear <= 1.4, {"exponent": seconds_linear}),
        Check(
            "crossing",
            numbers["seconds_attention"][-1] > numbers["seconds_linear"][-1],
            {
                "length": numbers["lengths"][-1],
                "times": numbers["seconds_attention"][-1] / numbers["seconds_linear"][-1],
            },
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    return cost_by_length(numbers, texts, ("attention", "linear"))


EXPERIMENT = Experiment(
    name="complexity",
    look_at=(
        "functional/reference.py:attention",
        "layers/attention.py:SelfAttention",
        "layers/feed_forward.py:FeedForward",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
