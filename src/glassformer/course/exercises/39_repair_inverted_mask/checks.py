"""Each function alone, then both together, then masked keys that must not matter."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def sequences(draw: Draw) -> dict[str, Tensor]:
    B, L, S, D, E = draw.sizes(5)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D), "v": draw.normal(B, S, E)}


def inputs(draw: Draw) -> dict[str, Tensor]:
    given = sequences(draw)
    B, L, S = len(given["q"]), given["q"].shape[1], given["k"].shape[1]
    return {**given, "mask": draw.mask(B, L, S)}


def attend_with_padding_mask(m: Any, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Any:
    return m.attention(q, k, v, m.padding_mask(lengths, k.shape[1]))


def padding(m: Any, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Any:
    real = torch.arange(k.shape[1]) < lengths[:, None]
    mask = m.padding_mask(lengths, k.shape[1])
    other = torch.where(real[..., None], v, v + 7.0)
    return m.attention(q, k, v, mask) - m.attention(q, k, other, mask)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, lambda m, q, k, v, mask: m.attention(q, k, v, mask))
    given = sequences(draw)
    B, S = given["k"].shape[:2]
    lengths = draw.integers(1, S, B)  # never all S: there is always some padding
    yield Case(
        "mask",
        lambda m, lengths, S: m.padding_mask(lengths, S),
        {"lengths": lengths, "S": S},
        ("mask",),
    )
    yield Case("together", attend_with_padding_mask, {**given, "lengths": lengths}, ("out",))
    yield Case("padding", padding, {**given, "lengths": lengths}, ("difference",))
