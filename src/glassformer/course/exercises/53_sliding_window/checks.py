"""As many queries as keys, and fewer; windows of 1 and wider than everything."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, n_queries: int, n_keys: int, window: int) -> Any:
    return m.sliding_window(n_queries, n_keys, window)


def cases(draw: Draw) -> Iterator[Case]:
    names = ("mask",)
    for _ in range(2):
        S = draw.size(6, 9)
        given = {"n_queries": S, "n_keys": S, "window": draw.size(2, 4)}
        yield Case("values", call, given, names)
    given = {"n_queries": draw.size(2, 4), "n_keys": draw.size(7, 9), "window": 3}
    yield Case("lengths", call, given, names)
    S = draw.size(4, 6)
    yield Case("one", call, {"n_queries": S, "n_keys": S, "window": 1}, names)
    yield Case("wide", call, {"n_queries": S, "n_keys": S, "window": S + 4}, names)
