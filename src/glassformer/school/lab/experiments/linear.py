"""A linear layer on (B, L, C): three ways to write it, and how far apart their numbers are."""

from typing import NamedTuple

import torch
from torch import nn

from glassformer.fromscratch import map_each_token, map_flattened, map_whole
from glassformer.render.chart import Axis, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import largest_difference, measure_seconds
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    widths: tuple[int, ...]
    batch: int
    length: int
    repeats: int


_SIZES = {
    "quick": _Size((4, 16, 64, 256), 2, 7, 3),
    "full": _Size((4, 16, 64, 256, 512, 1024), 2, 32, 7),
}
_DTYPES = ("float32", "float64")


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Differences in units of the last place, whether all bits agree, and times."""
    del seed
    widths, B, L, repeats = _SIZES[size]
    found: Numbers = {"widths": list(widths), "batch": B, "length": L, "flattened_bits": []}
    for dtype in _DTYPES:
        found[f"token_{dtype}"], found[f"flattened_{dtype}"] = [], []
    times: dict[str, list[float]] = {"whole": [], "flattened": [], "token": []}
    found["seconds"] = times
    leaks = []
    for width, _ in iterate_with_progress(widths, progress, found):
        for name in _DTYPES:
            dtype = getattr(torch, name)
            layer = nn.Linear(width, width, dtype=dtype)
            x = torch.randn(B, L, width, dtype=dtype)
            with torch.no_grad():
                whole, flat, token = (
                    way(layer, x) for way in (map_whole, map_flattened, map_each_token)
                )
                # What the numbers are rounded to: outputs are of size 1.
                unit = torch.finfo(dtype).eps
                found[f"flattened_{name}"].append(largest_difference(whole, flat) / unit)
                found[f"token_{name}"].append(largest_difference(whole, token) / unit)
                found["flattened_bits"].append(torch.equal(whole, flat))
                leaks.append(_leak(layer, x))
        layer, x = nn.Linear(width, width), torch.randn(B, L, width)
        with torch.no_grad():
            taken = measure_seconds(
                {
                    "whole": lambda layer=layer, x=x: map_whole(layer, x),
                    "flattened": lambda layer=layer, x=x: map_flattened(layer, x),
                    "token": lambda layer=layer, x=x: map_each_token(layer, x),
                },
                repeats=repeats,
            )
        for way, seconds in taken.items():
            times[way].append(seconds)
    return {**found, "leak": max(leaks)}


def _leak(layer: nn.Linear, x: torch.Tensor) -> float:
    """How much any other token's output changes when one token does."""
    changed = x.clone()
    changed[0, 0] += 1
    return largest_difference(layer(x)[:, 1:], layer(changed)[:, 1:])


def judge(numbers: Numbers) -> Verdict:
    apart = max(
        units / width**0.5
        for dtype in _DTYPES
        for units, width in zip(numbers[f"token_{dtype}"], numbers["widths"], strict=True)
    )
    slower = numbers["seconds"]["token"][-1] / numbers["seconds"]["whole"][-1]
    return Verdict.of(
        # The same C terms in another order differ by their roundings, which have random signs and
        # so add up to about √C units. Twice that leaves room; a real difference is millions.
        Check("token", apart <= 2, {"units": apart}),
        Check(
            "flattened",
            all(numbers["flattened_bits"]),
            {"equal": sum(numbers["flattened_bits"]), "n": len(numbers["flattened_bits"])},
        ),
        Check("leak", numbers["leak"] == 0, {"leak": numbers["leak"]}),
        # A token at a time reads the whole matrix again for each of them.
        Check("slower", slower > 1, {"times": slower, "width": numbers["widths"][-1]}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    width = Axis(label=texts("width"), log=True)
    # Room above and below: a line along 0 must be seen.
    most = 1.1 * max([1, *(units for dtype in _DTYPES for units in numbers[f"token_{dtype}"])])
    return Chart(
        (
            Lines(
                title=texts("apart"),
                x=width,
                y=Axis(label=texts("units"), least=0.0, most=most),
                places=tuple(numbers["widths"]),
                series=tuple(
                    Series(name=texts(way, dtype=d), values=tuple(numbers[f"{way}_{d}"]))
                    for way in ("token", "flattened")
                    for d in _DTYPES
                ),
            ),
            Lines(
                title=texts("time"),
                x=width,
                y=Axis(label=texts("milliseconds"), log=True),
                places=tuple(numbers["widths"]),
                series=tuple(
                    Series(
                        name=texts(f"{way}_way"),
                        values=tuple(1000 * s for s in numbers["seconds"][way]),
                    )
                    for way in ("whole", "flattened", "token")
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="linear",
    look_at=(
        "fromscratch/linear_map.py:map_whole",
        "fromscratch/linear_map.py:map_flattened",
        "fromscratch/linear_map.py:map_each_token",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
