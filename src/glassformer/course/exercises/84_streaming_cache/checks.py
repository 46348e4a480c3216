"""More tokens than fit, fewer, exactly as many; and a text read token by token."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, k: Tensor, v: Tensor, n_sinks: int, window: int) -> Any:
    k, v, positions = m.evict(k, v, n_sinks, window)
    return k, v, torch.as_tensor(positions).double()


def stream(m: Any, k: Tensor, v: Tensor, n_sinks: int, window: int) -> Any:
    kept_k, kept_v = k[:, :, :0], v[:, :, :0]
    positions = torch.arange(0)
    for i in range(k.shape[2]):
        grown_k = torch.cat((kept_k, k[:, :, i : i + 1]), dim=2)
        grown_v = torch.cat((kept_v, v[:, :, i : i + 1]), dim=2)
        kept_k, kept_v, positions = m.evict(grown_k, grown_v, n_sinks, window)
    return kept_k, kept_v, torch.as_tensor(positions).double()


def inputs(draw: Draw, S: int, n_sinks: int, window: int) -> dict[str, Any]:
    B, H, D, E = draw.sizes(4)
    k, v = draw.normal(B, H, S, D), draw.normal(B, H, S, E)
    return {"k": k, "v": v, "n_sinks": n_sinks, "window": window}


def cases(draw: Draw) -> Iterator[Case]:
    names = ("k", "v", "positions")
    for _ in range(2):
        n_sinks, window = draw.size(3, 4), draw.size(5, 7)
        more = draw.size(2, 9)
        yield Case("full", call, inputs(draw, n_sinks + window + more, n_sinks, window), names)
        yield Case("room", call, inputs(draw, window + 1, n_sinks, window), names)
    yield Case("room", call, inputs(draw, 9, 3, 6), names)
    yield Case("plain", call, inputs(draw, 11, 0, 4), names)
    yield Case("stream", stream, inputs(draw, 15, 2, 4), names)
