"""As many queries as keys, fewer, and a single one."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, n_heads: int, n_queries: int, n_keys: int) -> Any:
    return m.alibi(n_heads, n_queries, n_keys)


def cases(draw: Draw) -> Iterator[Case]:
    for name, H in (("values", 4), ("values", 16), ("eight", 8)):
        S = draw.size(4, 9)
        yield Case(name, call, {"n_heads": H, "n_queries": S, "n_keys": S}, ("bias",))
    for L in (draw.size(2, 4), 1):
        given = {"n_heads": 4, "n_queries": L, "n_keys": draw.size(5, 9)}
        yield Case("lengths", call, given, ("bias",))
