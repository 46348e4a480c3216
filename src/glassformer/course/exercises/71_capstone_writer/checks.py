"""Blocks and whole models with parts that are known to be right, after caches of any length."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.capstone.lending import lend
from glassformer.school.practice.cases import Case, Draw, battery

PARTS = lend(
    "split_heads", "merge_heads", "embedding", "rotary", "grouped_queries", "rms_norm", "swiglu"
)
N_BLOCKS = 2


def draw_sizes(draw: Draw) -> dict[str, Any]:
    n_kv_heads, head_dim = draw.choice([2, 3]), draw.choice([4, 6])
    n_heads = n_kv_heads * draw.choice([2, 3])
    dim = n_heads * head_dim
    return {
        "dim": dim,
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "hidden_dim": dim + draw.size(3, 7),
        "base": draw.choice([100.0, 3000.0]),
        "eps": draw.choice([0.01, 0.1]),
    }


def block_inputs(draw: Draw) -> dict[str, Any]:
    B, S = draw.sizes(2)
    sizes = draw_sizes(draw)
    shape = (B, sizes["n_kv_heads"], S, sizes["dim"] // sizes["n_heads"])
    old = {"k": draw.normal(*shape), "v": draw.normal(*shape)}
    return {"x": draw.normal(B, 1, sizes["dim"]), **old, **sizes}


def build_block(m: Any, **sizes: Any) -> nn.Module:
    return m.Block(PARTS, SimpleNamespace(**sizes))


def run_block(model: nn.Module, x: Tensor, k: Tensor, v: Tensor) -> Any:
    return model(x, k.shape[2], (k, v))[0]


def read_cache(model: nn.Module, x: Tensor, k: Tensor, v: Tensor) -> Any:
    return model(x, k.shape[2], (k, v))[1]


def model_inputs(draw: Draw) -> dict[str, Any]:
    B, L = draw.sizes(2, low=3)
    return {"tokens": draw.integers(0, 11, B, L), **draw_sizes(draw)}


def build_model(m: Any, **sizes: Any) -> nn.Module:
    known = SimpleNamespace(**sizes)
    blocks = [m.Block(PARTS, known) for _ in range(N_BLOCKS)]
    norm, head = PARTS.RMSNorm(known.dim, known.eps), nn.Linear(known.dim, 11, bias=False)
    return m.Writer(PARTS.Embedding(11, known.dim), blocks, norm, head)


def run_steps(model: nn.Module, tokens: Tensor) -> Any:
    caches: Any = [None] * N_BLOCKS
    steps = []
    for position in range(tokens.shape[1]):
        logits, caches = model(tokens[:, position : position + 1], position, caches)
        steps.append(logits)
    return torch.stack(steps, dim=1)


def cases(draw: Draw) -> Iterator[Case]:
    block = (draw, block_inputs)
    yield from battery(*block, run_block, build=build_block, variants=("parameters",))
    for case in battery(*block, run_block, build=build_block, variants=("values",)):
        yield Case("block", case.call, case.inputs, ("x",))
    for case in battery(*block, read_cache, build=build_block, variants=("values",)):
        yield Case("cache", case.call, case.inputs, ("k", "v"))
    model = (draw, model_inputs, run_steps)
    yield from battery(*model, build=build_model, variants=("parameters",))
    for case in battery(*model, build=build_model, variants=("values",)):
        yield Case("steps", case.call, case.inputs, ("logits",))
    yield from battery(*model, names=("logits",), build=build_model, variants=("float32",))
