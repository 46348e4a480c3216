"""Chunks that divide L and that do not; weights that vanish; no tensor of L × S."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery
from glassformer.school.practice.example_modules import Largest


def inputs(draw: Draw) -> dict[str, Any]:
    chunk = draw.size(2, 4)
    L = 2 * chunk + draw.size(1, chunk - 1)
    S, D = draw.sizes(2, low=6, high=9)
    return {"q": draw.normal(L, D), "k": draw.normal(S, D), "chunk": chunk}


def call(m: Any, q: Tensor, k: Tensor, chunk: int) -> Any:
    return tuple(m.statistics(q, k, chunk))


def measure_largest_tensor(m: Any, q: Tensor, k: Tensor, chunk: int) -> str:
    with Largest() as mode:
        m.statistics(q, k, chunk)
    return "< L × S" if mode.size < len(q) * len(k) else "≥ L × S"


def cases(draw: Draw) -> Iterator[Case]:
    names = ("entropy", "received")
    kinds = ("values", "strided", "gradient", "float32")
    yield from battery(draw, inputs, call, names=names, variants=kinds)
    for chunk in (1, 3, 100):
        given = {"q": draw.normal(6, 4), "k": draw.normal(7, 4), "chunk": chunk}
        yield Case("chunk", call, given, names)
    large = inputs(draw)
    yield Case("large", call, {**large, "q": large["q"] * 3000}, names)
    long = {"q": draw.normal(60, 4), "k": draw.normal(50, 4), "chunk": 8}
    yield Case("whole", measure_largest_tensor, long, ("numel",))
