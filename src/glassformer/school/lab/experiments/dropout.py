"""Dropout on the weights: the same output on average, and a noise that can be predicted."""

from typing import NamedTuple

import torch

from glassformer.functional import attention_weights
from glassformer.functional.reference import attention
from glassformer.render.chart import Axis, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    shares: tuple[float, ...]
    draws: int


_SIZES = {
    "quick": _Size((0.1, 0.3, 0.5), 1500),
    "full": _Size((0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7), 20000),
}
_L, _S, _D = 5, 24, 8
_AT_ONCE = 250


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Many draws of the same attention; mean, variance and the sum of a row of weights."""
    del seed
    shares, draws = _SIZES[size]
    q, k = torch.randn(1, 1, _L, _D), torch.randn(1, 1, _S, _D)
    v = torch.randn(1, 1, _S, _D)
    weights = attention_weights(q, k)[0, 0]
    exact = (weights @ v[0, 0]).double()
    # A column of ones beside the values: what comes out there is the sum of the row's weights.
    beside = torch.cat([v, torch.ones(1, 1, _S, 1)], -1)
    found: dict[str, list[float]] = {name: [] for name in ("off", "variance", "theory", "sum")}
    numbers: Numbers = {"shares": list(shares), "draws": draws, "places": _L * _D, **found}
    for share, own in iterate_with_progress(shares, progress, numbers):
        drawn = []
        for start in range(0, draws, _AT_ONCE):
            n = min(_AT_ONCE, draws - start)
            some = (t.expand(n, -1, -1, -1) for t in (q, k, beside))
            drawn.append(attention(*some, dropout=share)[:, 0])
            own((start + n) / draws)
        outs = torch.cat(drawn).double()  # (draws, L, D + 1)
        variance = outs[..., :_D].var(0)
        # How far the mean is off, in standard errors of that mean: about 1 if nothing is wrong.
        errors = (outs[..., :_D].mean(0) - exact) / (variance / draws).sqrt()
        found["off"].append(float(errors.square().mean().sqrt()))
        found["variance"].append(float(variance.mean()))
        # Each weight is kept with probability 1 − p and then divided by it.
        theory = share / (1 - share) * (weights.double().square() @ v[0, 0].double().square())
        found["theory"].append(float(theory.mean()))
        found["sum"].append(float(outs[..., _D].std()))
    return numbers


def judge(numbers: Numbers) -> Verdict:
    off = max(numbers["off"])
    ratios = [v / t for v, t in zip(numbers["variance"], numbers["theory"], strict=True)]
    return Verdict.of(
        # Root mean square of 40 standard normal numbers, not independent: 1 ± 0.2, seldom 1.6.
        # Without the division by 1 − p it would grow with the number of draws, far beyond.
        Check("mean", off < 1.8, {"off": off, "draws": numbers["draws"]}),
        # A variance from n draws is uncertain by √(2/n), here below 5 %.
        Check(
            "variance",
            all(0.85 < ratio < 1.15 for ratio in ratios),
            {"least": min(ratios), "most": max(ratios)},
        ),
        Check(
            "sum",
            numbers["sum"][-1] > 0.05,
            {"share": numbers["shares"][-1], "spread": numbers["sum"][-1]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    share = Axis(label=texts("share"))
    most = 1.1 * max(numbers["variance"], default=1.0)
    return Chart(
        (
            Lines(
                title=texts("noise"),
                x=share,
                y=Axis(label=texts("variance"), least=0.0, most=most),
                places=tuple(numbers["shares"]),
                series=(
                    Series(name=texts("measured"), values=tuple(numbers["variance"])),
                    Series(name=texts("theory"), values=tuple(numbers["theory"])),
                ),
            ),
            Lines(
                title=texts("off"),
                x=share,
                y=Axis(label=texts("errors"), least=0.0, most=1.25 * max([1, *numbers["off"]])),
                places=tuple(numbers["shares"]),
                series=(Series(name=texts("measured"), values=tuple(numbers["off"])),),
                marks=(Mark(name=texts("chance"), at=1.0),),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="dropout",
    look_at=("functional/reference.py:attention", "fromscratch/function.py:attention"),
    measure=measure,
    judge=judge,
    draw=draw,
)
