"""Random distributions; drafts that are all accepted, rejected at once, or somewhere between."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call_accept(m: Any, p: Tensor, q: Tensor) -> Any:
    return m.accept_probability(p, q)


def call_replacement(m: Any, p: Tensor, q: Tensor) -> Any:
    return m.replacement(p, q)


def call_both(m: Any, p: Tensor, q: Tensor) -> Any:
    accepted = q * m.accept_probability(p, q)
    return accepted + (1 - accepted.sum()) * m.replacement(p, q)


def call_verify(m: Any, p: Tensor, q: Tensor, drafted: Tensor, chances: Tensor) -> Any:
    n, distribution = m.verify(p, q, drafted, chances)
    return int(n), distribution


def draw_rows(draw: Draw, n: int, V: int) -> Tensor:
    return draw.normal(n, V, scale=1.2).softmax(dim=-1)


def cases(draw: Draw) -> Iterator[Case]:
    for name, call in (("accept", call_accept), ("replacement", call_replacement)):
        for _ in range(2):
            p, q = draw_rows(draw, 2, draw.size(4, 8))
            yield Case(name, call, {"p": p, "q": q}, ("probabilities",))
    p, q = draw_rows(draw, 2, 6)
    yield Case("unchanged", call_both, {"p": p, "q": q}, ("distribution",))
    yield Case("equal", call_replacement, {"p": p, "q": p.clone()}, ("probabilities",))
    for name in ("all", "first", "random", "random", "random", "random"):
        n, V = draw.sizes(2, low=4, high=8)
        p, q = draw_rows(draw, n + 1, V), draw_rows(draw, n, V)
        drafted = draw.integers(0, V, n)
        chances = 0.7 * draw.normal(n).sigmoid()
        if name == "all":
            chances = torch.zeros(n, dtype=torch.float64)
        if name == "first":  # a token that is drafted too often, and bad luck; the rest are good
            drafted[0] = (p[0] / q[0]).argmin()
            chances = torch.cat([torch.ones(1) - 1e-3, torch.zeros(n - 1)]).double()
        given = {"p": p, "q": q, "drafted": drafted, "chances": chances}
        yield Case(name, call_verify, given, ("accepted", "distribution"))
