"""Does anything leak from the future? The Jacobian says so; and what becomes of empty rows."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.fromscratch import causal_bias, look_ahead_mask
from glassformer.functional import Causal, attention
from glassformer.render.chart import Axis, Bars, Cells, Chart, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import largest_difference
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    length: int
    width: int


_SIZES = {"quick": _Size(8, 8), "full": _Size(16, 16)}
_WAYS = ("library", "infinity", "billion", "none", "shifted", "after")


def _masked_weights(scores: Tensor, way: str) -> Tensor:
    """Weights under a mask that is written in one of the ways, right and wrong."""
    L = scores.shape[-1]
    if way == "infinity":
        return (scores + causal_bias(L).to(scores)).softmax(-1)
    if way == "billion":
        return scores.masked_fill(~look_ahead_mask(L), -1e9).softmax(-1)
    if way == "shifted":  # one diagonal too many: everybody sees the token that is to be predicted
        return scores.masked_fill(torch.ones(L, L, dtype=torch.bool).triu(2), -math.inf).softmax(-1)
    if way == "after":  # zeros behind softmax: the future is gone, but stays in the denominator
        return scores.softmax(-1) * look_ahead_mask(L)
    return scores.softmax(-1)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """|∂ output at i / ∂ input at j| for every pair of places, for six ways to mask."""
    del seed
    L, width = _SIZES[size]
    x = torch.randn(L, width, dtype=torch.float64)
    maps = [torch.randn(width, width, dtype=torch.float64) / math.sqrt(width) for _ in range(3)]

    def attend(way: str) -> Callable[[Tensor], Tensor]:
        def function(x: Tensor) -> Tensor:
            q, k, v = (x @ w for w in maps)
            if way == "library":
                return attention(q[None, None], k[None, None], v[None, None], mask=Causal())[0, 0]
            return _masked_weights(q @ k.T / math.sqrt(width), way) @ v

        return function

    jacobians: dict[str, list[list[float]]] = {}
    leaks: dict[str, float] = {}
    numbers: Numbers = {"length": L, "jacobians": jacobians, "leaks": leaks}
    for way, _ in iterate_with_progress(_WAYS, progress, numbers):
        found: Tensor = torch.autograd.functional.jacobian(attend(way), x)  # type: ignore[assignment]
        sizes = found.square().sum((1, 3)).sqrt()  # (L, C, L, C) → (L, L)
        jacobians[way] = sizes.tolist()
        leaks[way] = float(sizes.triu(1).max())
    with torch.no_grad():
        apart = largest_difference(attend("infinity")(x), attend("billion")(x))
    return {**numbers, "apart": apart, "empty": _probe_empty_row()}


def _probe_empty_row() -> Numbers:
    """A row in which nothing is allowed: out and gradient, by −∞, by −1e9 and by us."""
    L, D = 4, 3
    found = {}
    for way in ("infinity", "billion", "library"):
        q, k, v = (torch.randn(1, 1, L, D).requires_grad_() for _ in range(3))
        mask = torch.ones(L, L, dtype=torch.bool)
        mask[1] = False
        if way == "library":
            out = attention(q, k, v, mask=mask)
        else:
            # Added, as additive masks are: filling in would keep the NaN out of the gradient.
            low = torch.zeros(L, L).masked_fill(~mask, -math.inf if way == "infinity" else -1e9)
            out = (q @ k.transpose(-1, -2) / math.sqrt(D) + low).softmax(-1) @ v
        row = out[0, 0, 1]
        out.nan_to_num().sum().backward()
        assert k.grad is not None
        found[way] = {
            "nan": bool(row.isnan().any()),
            "zero": bool((row == 0).all()),
            "mean": bool(torch.allclose(row, v[0, 0].mean(0))),
            "nan_gradient": bool(k.grad.isnan().any()),
        }
    return found


def judge(numbers: Numbers) -> Verdict:
    leaks, empty = numbers["leaks"], numbers["empty"]
    return Verdict.of(
        # Exactly 0: exp(−∞) is 0, and 0 times anything is 0. There is nothing to round.
        Check(
            "right",
            leaks["library"] == leaks["infinity"] == 0,
            {"library": leaks["library"], "infinity": leaks["infinity"]},
        ),
        # Values of size 1 make entries of about 0.1; a hundredth of that is no rounding.
        Check(
            "wrong",
            min(leaks["none"], leaks["shifted"], leaks["after"]) > 1e-3,
            {name: leaks[name] for name in ("none", "shifted", "after")},
        ),
        Check(
            "billion",
            leaks["billion"] == 0 and numbers["apart"] == 0,
            {"leak": leaks["billion"], "apart": numbers["apart"]},
        ),
        Check(
            "empty",
            empty["infinity"]["nan"]
            and empty["infinity"]["nan_gradient"]
            and empty["billion"]["mean"],
        ),
        Check("ours", empty["library"]["zero"] and not empty["library"]["nan_gradient"]),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    L, leaks = numbers["length"], numbers["leaks"]
    nothing = ((None,) * L,) * L  # before it is measured

    def cells(way: str) -> Cells:
        return Cells(
            title=texts(f"{way}_map"),
            rows=texts("output"),
            columns=texts("input"),
            values=tuple(tuple(row) for row in numbers["jacobians"].get(way, nothing)),
        )

    bars = Bars(
        title=texts("leaks"),
        y=Axis(label=texts("leak")),
        names=tuple(texts(way) for way in _WAYS),
        series=(Series(name=texts("leak"), values=tuple(leaks.get(way) for way in _WAYS)),),
    )
    return Chart((cells("infinity"), cells("after"), bars))


EXPERIMENT = Experiment(
    name="masks",
    look_at=(
        "fromscratch/masked_single_head.py:MaskedSingleHead",
        "fromscratch/additive_mask.py:causal_bias",
        "functional/masks/positional.py:Causal",
        "functional/reference.py:attention_weights",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
