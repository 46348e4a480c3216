"""Softmax in few bits: where exp overflows, what subtracting the largest saves, what −1e9 is."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.render.chart import Axis, Bars, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    largest: tuple[float, ...]
    rows: int


_SIZES = {
    "quick": _Size((4, 8, 10, 12, 40, 85, 92, 300), 200),
    "full": _Size(
        (1, 2, 4, 8, 10, 11, 12, 16, 20, 40, 60, 80, 85, 88, 90, 92, 100, 300, 1000), 5000
    ),
}
_DTYPES = ("float16", "bfloat16", "float32")
_KEYS = 32


def plain_softmax(scores: Tensor) -> Tensor:
    """As the formula says it: exp, then divide by the sum."""
    weights = scores.exp()
    return weights / weights.sum(-1, keepdim=True)


def shifted_softmax(scores: Tensor) -> Tensor:
    """The largest score of a row becomes 0 first: the same weights, and exp is never above 1."""
    return plain_softmax(scores - scores.amax(-1, keepdim=True))


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """How many rows still sum to 1, and how far weights are from those in float64."""
    del seed
    largest, n = _SIZES[size]
    found: Numbers = {"largest": list(largest)}
    for name in _DTYPES:
        found[f"plain_{name}"], found[f"shifted_{name}"] = [], []
    error: dict[str, float] = dict.fromkeys(
        (*_DTYPES, "bfloat16_by_float32", "float16_by_float32"), 0.0
    )
    found["error"] = error
    for most, _ in iterate_with_progress(largest, progress, found):
        # Rows whose largest score is `most`, the others at random below it.
        exact = most - torch.rand(n, _KEYS, dtype=torch.float64) * 8
        exact[:, 0] = most
        for name in _DTYPES:
            scores = exact.to(getattr(torch, name))
            wanted = scores.double().softmax(-1)
            for way, softmax in (("plain", plain_softmax), ("shifted", shifted_softmax)):
                found[f"{way}_{name}"].append(_share_broken(softmax(scores)))
            shifted = shifted_softmax(scores)
            error[name] = max(error[name], _relative_error(shifted, wanted))
            if name != "float32":
                by = shifted_softmax(scores.float()).to(scores.dtype)
                key = f"{name}_by_float32"
                error[key] = max(error[key], _relative_error(by, wanted))
    return {**found, "filled": {name: _probe_fill(name) for name in _DTYPES}}


def _share_broken(weights: Tensor) -> float:
    """Rows that hold something that is no number, or whose sum is far from 1."""
    sums = weights.double().sum(-1)
    return float((~((sums - 1).abs() < 0.1)).double().mean())


def _relative_error(weights: Tensor, wanted: Tensor) -> float:
    large = wanted > 0.01
    return float(((weights.double() - wanted).abs() / wanted)[large].max())


def _probe_fill(name: str) -> Numbers:
    """What −1e9 is in a dtype, and what a row becomes in which all scores are hidden by it."""
    dtype = getattr(torch, name)
    scores, hidden = torch.randn(4).to(dtype), torch.ones(4, dtype=torch.bool)
    try:
        scores.masked_fill(hidden, -1e9)
        refused = False
    except RuntimeError:
        refused = True
    added = (scores + torch.tensor(-1e9).to(dtype)).softmax(-1)
    return {
        "refused": refused,
        "cast": float(torch.tensor(-1e9).to(dtype)),
        "nan": bool(added.isnan().any()),
        "even": bool((added == 0.25).all()),
    }


def judge(numbers: Numbers) -> Verdict:
    largest = numbers["largest"]

    def first_broken(name: str) -> float:
        broken = zip(largest, numbers[f"plain_{name}"], strict=True)
        return next((float(most) for most, share in broken if share > 0), math.inf)

    half, brain, single = (first_broken(name) for name in _DTYPES)
    saved = max(max(numbers[f"shifted_{name}"]) for name in _DTYPES)
    filled, error = numbers["filled"], numbers["error"]
    return Verdict.of(
        # exp overflows at log of the largest number: 11.09 in float16, 88.7 in the other two
        # (a sum of several reaches it a little sooner).
        Check(
            "overflow",
            8 < half <= 12 and 80 < brain <= 92 and 80 < single <= 92,
            {
                "half": half,
                "brain": brain,
                "single": single,
            },
        ),
        Check("shifted", saved == 0, {"share": saved}),
        Check("refused", filled["float16"]["refused"] and filled["float16"]["nan"]),
        Check("even", filled["bfloat16"]["even"] and filled["float32"]["even"]),
        # One rounding at the end is half a unit in the last place; sums in few bits need several.
        Check(
            "float32",
            error["bfloat16_by_float32"] < error["bfloat16"]
            and error["float16_by_float32"] < error["float16"],
            {
                "brain": error["bfloat16"],
                "brain_by": error["bfloat16_by_float32"],
                "half": error["float16"],
                "half_by": error["float16_by_float32"],
            },
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    error = numbers["error"]
    return Chart(
        (
            Lines(
                title=texts("broken"),
                x=Axis(label=texts("largest"), log=True),
                y=Axis(label=texts("share"), least=0.0, most=1.0),
                places=tuple(numbers["largest"]),
                series=(
                    *(
                        Series(
                            name=texts("plain", dtype=name),
                            values=tuple(numbers[f"plain_{name}"]),
                        )
                        for name in _DTYPES
                    ),
                    Series(
                        name=texts("shifted"),
                        values=tuple(
                            max(shares)
                            for shares in zip(
                                *(numbers[f"shifted_{name}"] for name in _DTYPES), strict=True
                            )
                        ),
                    ),
                ),
            ),
            Bars(
                title=texts("error"),
                y=Axis(label=texts("relative"), log=True),
                names=(
                    "bfloat16",
                    texts("by", dtype="bfloat16"),
                    "float16",
                    texts("by", dtype="float16"),
                    "float32",
                ),
                series=(
                    Series(
                        name=texts("error"),
                        values=(
                            error["bfloat16"],
                            error["bfloat16_by_float32"],
                            error["float16"],
                            error["float16_by_float32"],
                            error["float32"],
                        ),
                    ),
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="low-precision",
    look_at=(
        "functional/reference.py:attention_weights",
        "fromscratch/additive_mask.py:causal_bias",
        "functional/backends/streaming.py:attend",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
