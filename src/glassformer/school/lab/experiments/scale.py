"""Why scores are divided by √d_k: what width does to their variance, to softmax, to gradients."""

import math
from typing import NamedTuple

import torch

from glassformer.functional import attention_weights
from glassformer.render.chart import Axis, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import fit_exponent
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    widths: tuple[int, ...]
    queries: int


_SIZES = {
    "quick": _Size((4, 16, 64, 256, 1024), 32),
    "full": _Size((2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096), 256),
}
_SETS, _KEYS = 8, 64  # of keys, each with queries of its own; and how many keys a set has


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Random queries and keys of every width, with and without the division."""
    del seed  # already set: whatever torch draws follows it
    widths, n = _SIZES[size]
    found: dict[str, list[float]] = {
        f"{what}_{how}": []
        for what in ("variance", "largest", "gradient")
        for how in ("plain", "scaled")
    }
    numbers: Numbers = {"widths": list(widths), "keys": _KEYS, **found}
    for width, _ in iterate_with_progress(widths, progress, numbers):
        q, k = torch.randn(_SETS, 1, n, width), torch.randn(_SETS, 1, _KEYS, width)
        wanted = torch.randn(_KEYS)  # some direction in which the weights should change
        for how, factor in (("plain", 1.0), ("scaled", 1 / math.sqrt(width))):
            scores = (q @ k.transpose(-1, -2) * factor).requires_grad_()
            weights = attention_weights(q, k, scale=factor)
            (scores.softmax(-1) @ wanted).sum().backward()
            assert scores.grad is not None
            found[f"variance_{how}"].append(float(scores.detach().var()))
            found[f"largest_{how}"].append(float(weights.amax(-1).mean()))
            # The median query: a mean would be that of the few rows with a tie at the top.
            found[f"gradient_{how}"].append(float(scores.grad.norm(dim=-1).median()))
    return numbers


def judge(numbers: Numbers) -> Verdict:
    widths = numbers["widths"]
    slope = fit_exponent(widths, numbers["variance_plain"])
    scaled = numbers["variance_scaled"]
    plain_left = numbers["gradient_plain"][-1] / numbers["gradient_plain"][0]
    scaled_left = numbers["gradient_scaled"][-1] / numbers["gradient_scaled"][0]
    return Verdict.of(
        # A sum of d independent terms of variance 1 has variance d: an exponent of exactly 1,
        # measured from a finite number of draws.
        Check("variance", 0.95 <= slope <= 1.05, {"exponent": slope}),
        # 512 keys of 2 coordinates are known to 5 %: a quarter is far outside of chance.
        Check(
            "steady",
            max(abs(v - 1) for v in scaled) < 0.25,
            {"least": min(scaled), "most": max(scaled)},
        ),
        # Above 0.9 on average softmax is all but a choice of one key.
        Check(
            "saturated",
            numbers["largest_plain"][-1] > 0.9 and max(numbers["largest_scaled"]) < 0.5,
            {
                "width": widths[-1],
                "plain": numbers["largest_plain"][-1],
                "scaled": numbers["largest_scaled"][-1],
            },
        ),
        # A tenth would already make learning ten times slower; half is no change worth a word.
        Check(
            "gradient",
            plain_left < 0.1 and scaled_left > 0.5,
            {"first": widths[0], "last": widths[-1], "plain": plain_left, "scaled": scaled_left},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    def panel(what: str, **options: float) -> Lines:
        return Lines(
            title=texts(what),
            x=Axis(label=texts("width"), log=True),
            y=Axis(label=texts(f"{what}_axis"), log=what != "largest", **options),
            places=tuple(numbers["widths"]),
            series=tuple(
                Series(name=texts(how), values=tuple(numbers[f"{what}_{how}"]))
                for how in ("plain", "scaled")
            ),
            marks=(Mark(name=texts("even"), at=1 / numbers["keys"]),) if what == "largest" else (),
        )

    return Chart((panel("variance"), panel("largest", least=0.0, most=1.0), panel("gradient")))


EXPERIMENT = Experiment(
    name="scale",
    look_at=("fromscratch/function.py:attention", "functional/reference.py:attention_weights"),
    measure=measure,
    judge=judge,
    draw=draw,
)
