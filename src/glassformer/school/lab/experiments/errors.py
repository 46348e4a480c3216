"""Ten errors of teaching material on attention, run: how far from the truth, right and wrong."""

import math

import torch

from glassformer.render.chart import Axis, Bars, Chart, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.ten_errors import ERRORS
from glassformer.school.lab.texts import ExperimentTexts

_DRAWS = {"quick": 3, "full": 40}


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """The mildest wrong answer and the worst right one, over several draws."""
    del seed
    found: Numbers = {}
    numbers: Numbers = {"errors": found, "draws": _DRAWS[size]}
    for name, _ in iterate_with_progress(tuple(ERRORS), progress, numbers):
        with torch.no_grad():
            draws = [ERRORS[name]() for _ in range(_DRAWS[size])]
        raised = sum(draw.wrong is None for draw in draws)
        wrong = [draw.wrong for draw in draws if draw.wrong is not None]
        right = [math.inf if draw.right is None else draw.right for draw in draws]
        found[name] = {
            "raised": raised == len(draws),
            "wrong": min(wrong) if wrong else None,
            "right": max(right),
        }
    return numbers


# A wrong form must be off by a hundredth in every draw, or raise. A right one may be off by
# rounding; 1e-4 is for `assume_xavier`: the largest of its 9100 weights only approaches the bound.
_WRONG, _RIGHT = 1e-2, 1e-4


def judge(numbers: Numbers) -> Verdict:
    holds = {
        name: (each["raised"] or (each["wrong"] or 0.0) > _WRONG) and each["right"] < _RIGHT
        for name, each in numbers["errors"].items()
    }
    return Verdict.of(
        Check("all", all(holds.values()), {"n": sum(holds.values()), "all": len(holds)}),
        *(
            Check(
                name,
                holds[name],
                {
                    "wrong": math.nan if each["wrong"] is None else each["wrong"],
                    "right": each["right"],
                },
            )
            for name, each in numbers["errors"].items()
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    errors = numbers["errors"]

    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    return Chart(
        (
            Bars(
                title=texts("title"),
                y=Axis(label=texts("apart")),
                names=tuple(texts(name) for name in errors),
                series=(
                    Series(
                        name=texts("wrong"),
                        values=tuple(finite(each["wrong"]) for each in errors.values()),
                    ),
                    Series(
                        name=texts("right"),
                        values=tuple(finite(each["right"]) for each in errors.values()),
                    ),
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="errors",
    look_at=(
        "school/lab/ten_errors.py:ERRORS",
        "fromscratch/function.py:attention",
        "fromscratch/masked_single_head.py:MaskedSingleHead",
        "fromscratch/multi_head_linear.py:MultiHeadLinear",
        "fromscratch/residual.py:post_norm",
        "fromscratch/layer_norm.py:LayerNorm",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
