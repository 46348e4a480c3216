"""Tables in random order in a pool whose other places are full of other texts."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def call(m: Any, q: Tensor, k_pool: Tensor, v_pool: Tensor, table: Tensor, length: int) -> Any:
    return m.paged_attention(q, k_pool, v_pool, table, length)


def call_slot(m: Any, table: Tensor, block_size: int, positions: list[int]) -> Any:
    return [[int(n) for n in m.find_slot(table, i, block_size)] for i in positions]


def draw_inputs(draw: Draw, n_blocks: int = 3, left_over: int | None = None) -> dict[str, Any]:
    """A text of so many blocks, of which the last has places that are left over."""
    H, T, D = draw.sizes(3, low=3, high=6)
    pool = 8
    table = draw.normal(pool).argsort()[:n_blocks]
    left_over = draw.size(1, T - 1) if left_over is None else left_over
    return {
        "q": draw.normal(H, D, scale=2.0),
        "k_pool": draw.normal(pool, H, T, D),
        "v_pool": draw.normal(pool, H, T, D),
        "table": table,
        "length": n_blocks * T - left_over,
    }


def cases(draw: Draw) -> Iterator[Case]:
    for T in draw.sizes(2, low=3, high=6):
        table = draw.normal(9).argsort()[:4]
        given = {"table": table, "block_size": T, "positions": [0, T - 1, T, 2 * T + 1, 4 * T - 1]}
        yield Case("slot", call_slot, given, ("slots",))
    kinds = ("values", "strided", "gradient", "float32")
    yield from battery(draw, draw_inputs, call, variants=kinds)
    yield Case("full", call, draw_inputs(draw, left_over=0), ("out",))
    one = draw_inputs(draw, n_blocks=1)
    yield Case("single", call, {**one, "length": 1}, ("out",))
