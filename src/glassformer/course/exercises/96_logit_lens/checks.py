"""States whose lengths differ by part and position, so that every missing norm shows."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    N, L, C = draw.sizes(3, 3, 7)
    V = draw.size(9, 13)
    lengths = draw.normal(N, L, 1).exp()
    return {
        "states": draw.normal(N, L, C) * lengths,
        "gain": 1 + 0.5 * draw.normal(C).abs(),
        "unembed": draw.normal(V, C),
    }


def call(m: Any, states: Tensor, gain: Tensor, unembed: Tensor) -> Any:
    return m.logit_lens(states, gain, unembed)


def read_ranks(m: Any, states: Tensor, gain: Tensor, unembed: Tensor) -> Any:
    return m.logit_lens(states, gain, unembed)[1]


def read_end(m: Any, states: Tensor, gain: Tensor, unembed: Tensor) -> Any:
    logits, ranks = m.logit_lens(states, gain, unembed)
    return logits[-1], ranks[-1]


def cases(draw: Draw) -> Iterator[Case]:
    names = ("logits", "ranks")
    yield from battery(draw, inputs, call, names=names, variants=("values", "strided"))
    yield Case("ranks", read_ranks, inputs(draw), ("ranks",))
    yield Case("end", read_end, inputs(draw), names)
