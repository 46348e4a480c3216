"""The mask itself; attention with it; and padding whose content must not matter."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, E = draw.sizes(5, low=3, high=8)
    return {
        "q": draw.normal(B, L, D),
        "k": draw.normal(B, S, D),
        "v": draw.normal(B, S, E),
        "mask": draw.mask(B, 1, S),
    }


def change_padding(m: Any, q: Tensor, k: Tensor, v: Tensor, other: Tensor, lengths: Tensor) -> Any:
    mask = m.padding_mask(lengths, k.shape[1])
    real = m.attention(q, k, v, mask)[0]
    filled = m.attention(q, k.where(mask.mT, other), v, mask)[0]
    return real - filled


def cases(draw: Draw) -> Iterator[Case]:
    B, S = draw.sizes(2, low=4)
    lengths = draw.integers(1, S, B)
    yield Case(
        "mask",
        lambda m, lengths, length: m.padding_mask(lengths, length),
        {"lengths": lengths, "length": S},
        ("mask",),
    )
    yield from battery(
        draw,
        inputs,
        lambda m, q, k, v, mask: m.attention(q, k, v, mask),
        names=("out", "weights"),
    )
    D = draw.size()
    yield Case(
        "padding",
        change_padding,
        {
            "q": draw.normal(B, 3, D),
            "k": draw.normal(B, S, D),
            "v": draw.normal(B, S, D),
            "other": draw.normal(B, S, D),
            "lengths": lengths,
        },
        ("difference",),
    )
