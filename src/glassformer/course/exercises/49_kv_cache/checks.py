"""The whole sequence, single tokens, chunks, and the cache itself."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery


def build(m: Any, dim: int) -> nn.Module:
    return m.CachedAttention(dim)


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=4, high=8)
    return {"x": draw.normal(B, L, C), "dim": C}


def run_whole(model: Any, x: Tensor) -> Any:
    return model(x)[0]


def run_in_chunks(model: Any, x: Tensor, lengths: list[int]) -> tuple[Tensor, Any]:
    outs, cache = [], None
    for part in x.split(lengths, dim=1):
        out, cache = model(part, cache)
        outs.append(out)
    return torch.cat(outs, dim=1), cache


def steps(model: Any, x: Tensor) -> Any:
    return run_in_chunks(model, x, [1] * x.shape[1])[0]


def chunks(model: Any, x: Tensor) -> Any:
    return run_in_chunks(model, x, [2, x.shape[1] - 2])[0]


def read_cache(model: Any, x: Tensor) -> Any:
    return run_in_chunks(model, x, [1, 2, x.shape[1] - 3])[1]


def cases(draw: Draw) -> Iterator[Case]:
    kinds = ("parameters", "values", "gradient", "float32", "batch")
    yield from battery(draw, inputs, run_whole, build=build, variants=kinds)
    for name, call in (("steps", steps), ("chunks", chunks)):
        for case in battery(draw, inputs, call, build=build, variants=("values",)):
            yield Case(name, case.call, case.inputs, ("out",))
    for case in battery(draw, inputs, read_cache, build=build, variants=("values",)):
        yield Case("cache", case.call, case.inputs, ("k", "v"))
