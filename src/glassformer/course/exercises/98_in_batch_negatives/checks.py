"""Texts of different lengths; pairs whose vectors have different lengths; extra documents."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def call_pool(m: Any, hidden: Tensor, mask: Tensor) -> Any:
    return m.mean_pool(hidden, mask)


def call_loss(m: Any, queries: Tensor, documents: Tensor, temperature: float) -> Any:
    return m.info_nce(queries, documents, temperature)


def draw_texts(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=3, high=8)
    lengths = draw.integers(1, L, B)  # every text has padding
    return {"hidden": draw.normal(B, L, C), "mask": torch.arange(L) < lengths[:, None]}


def draw_pairs(draw: Draw, extra: int = 0) -> dict[str, Any]:
    B, C = draw.size(3, 5), draw.size(6, 8)
    shared = draw.normal(B, C)
    documents = torch.cat([shared + draw.normal(B, C), draw.normal(extra, C)])
    return {
        "queries": (shared + draw.normal(B, C)) * draw.normal(B, 1).exp(),
        "documents": documents * draw.normal(B + extra, 1).exp(),
        "temperature": draw.choice([0.2, 0.4, 0.5]),
    }


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(2):
        yield Case("pool", call_pool, draw_texts(draw), ("vectors",))
    poisoned = draw_texts(draw)
    poisoned["hidden"][~poisoned["mask"]] = float("nan")
    yield Case("poison", call_pool, poisoned, ("vectors",))
    for _ in range(2):
        yield Case("pairs", call_loss, draw_pairs(draw), ("loss",))
    for _ in range(2):
        yield Case("extra", call_loss, draw_pairs(draw, extra=3), ("loss",))
    yield from battery(
        draw, draw_pairs, call_loss, names=("loss",), variants=("gradient", "float32")
    )
    yield Case("sharp", call_loss, draw_pairs(draw) | {"temperature": 1e-4}, ("loss",))
