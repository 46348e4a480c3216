"""Models from a table: the next token depends on the position and on the last two tokens."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw

BEGIN, END, V = 0, 1, 6
TIMES = 25


def search(m: Any, tables: Tensor, beams: int, max_new: int, length_penalty: float) -> Any:
    """One search per table; a rare mistake shows in at least one of them."""
    found = []
    for table in tables:
        rows = table.log_softmax(-1)

        def log_probs(tokens: list[int], rows: Tensor = rows) -> list[float]:
            before = tokens[-2] if len(tokens) > 1 else 0
            place = (len(tokens) + 3 * before) % len(rows)
            return rows[place, tokens[-1]].tolist()

        tokens, score = m.beam_search(log_probs, BEGIN, END, beams, max_new, length_penalty)
        found.append({"tokens": list(tokens), "score": float(score)})
    return found


def tables(draw: Draw) -> Tensor:
    numbers = draw.normal(TIMES, 7, V, V, scale=1.2)
    numbers[..., BEGIN] -= 4  # rarely generated again
    numbers[..., END] += 0.3
    return numbers


def cases(draw: Draw) -> Iterator[Case]:
    names = ("found",)
    for name, beams, penalty in (("plain", 3, 0.0), ("penalty", 3, 0.8), ("penalty", 4, 1.0)):
        given = {"tables": tables(draw), "beams": beams, "max_new": 6, "length_penalty": penalty}
        yield Case(name, search, given, names)
    given = {"tables": tables(draw), "beams": 1, "max_new": 6, "length_penalty": 0.5}
    yield Case("one", search, given, names)
