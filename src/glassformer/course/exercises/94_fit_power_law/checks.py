"""Curves with a floor well above zero, sizes in ratios other than ten, exponents that differ."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw


def draw_law(draw: Draw) -> tuple[float, float, float]:
    floor, scale = 0.5 + draw.size(0, 20) / 10, 3.0 + draw.size(0, 40) / 10
    return floor, scale, 0.2 + draw.size(0, 12) / 20


def ladder(draw: Draw) -> dict[str, Any]:
    floor, scale, alpha = draw_law(draw)
    first, ratio = float(draw.size(5, 60)), float(draw.choice([2, 3, 4, 7]))
    sizes = [first, first * ratio, first * ratio**2]
    return {"sizes": sizes, "losses": [floor + scale / size**alpha for size in sizes]}


def as_numbers(found: Any) -> tuple[float, ...]:
    """Python, NumPy and torch numbers alike, in a list or a tuple."""
    return tuple(float(each) for each in found)


def fit(m: Any, sizes: list[float], losses: list[float]) -> Any:
    return as_numbers(m.fit_power_law(sizes, losses))


def predict(m: Any, sizes: list[float], losses: list[float]) -> Any:
    floor, scale, alpha = as_numbers(m.fit_power_law(sizes, losses))
    return floor + scale / (sizes[2] * 10) ** alpha


def spend(m: Any, **law: float) -> Any:
    return as_numbers(m.spend_compute(**law))


def share_spent(m: Any, **law: float) -> Any:
    N, D = as_numbers(m.spend_compute(**law))
    return 6 * N * D / law["compute"]


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(3):
        yield Case("fit", fit, ladder(draw), ("E", "A", "alpha"))
    yield Case("next", predict, ladder(draw), ("predicted loss",))
    for call, name, results in (
        (spend, "spend", ("N", "D")),
        (spend, "spend", ("N", "D")),
        (share_spent, "budget", ("6 N D / compute",)),
    ):
        law = {
            "compute": float(draw.choice([6e4, 3e6, 5e8])),
            "A": 20.0 + draw.size(0, 30),
            "alpha": 0.25 + draw.size(0, 5) / 100,
            "B": 60.0 + draw.size(0, 30),
            "beta": 0.35 + draw.size(0, 5) / 100,
        }
        yield Case(name, call, law, results)
