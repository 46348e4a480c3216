"""Sizes that differ; the layer as it starts, with filled parameters, and merged."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery
from glassformer.school.practice.random_inputs import fill


def build(m: Any, n_in: int, n_out: int, rank: int, alpha: float) -> nn.Module:
    return m.LoRALinear(nn.Linear(n_in, n_out), rank, alpha)


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, n_in, n_out, rank = draw.sizes(5, low=2, high=7)
    alpha = draw.choice([0.5, 3.5, 9.0])  # never a rank: the scale is not 1
    x = draw.normal(B, L, n_in)
    return {"x": x, "n_in": n_in, "n_out": n_out, "rank": rank, "alpha": alpha}


def run(model: Any, x: Tensor) -> Any:
    return model(x)


def call_start(m: Any, x: Tensor, **sizes: Any) -> Any:
    """What is added, how much of A and of B is not zero, and which parameters are trained."""
    model: Any = build(m, **sizes)
    added = (model(x.float()) - model.base(x.float())).abs().max().item()
    moved = [(each != 0).float().mean().item() for each in (model.lora_a, model.lora_b)]
    trained = sorted(name for name, p in model.named_parameters() if p.requires_grad)
    return added, *moved, trained


def call_merged(m: Any, x: Tensor, key: int, **sizes: Any) -> Any:
    model: Any = fill(build(m, **sizes), key)
    return model.merged()(x.float())


def call_kept(m: Any, x: Tensor, key: int, **sizes: Any) -> Any:
    model: Any = fill(build(m, **sizes), key)
    layer = model.merged()
    return model(x.float()), type(layer).__name__


def cases(draw: Draw) -> Iterator[Case]:
    yield Case("start", call_start, inputs(draw), ("added", "random_a", "random_b", "trained"))
    kinds = ("parameters", "values", "gradient", "float32", "batch")
    yield from battery(draw, inputs, run, build=build, variants=kinds)
    merged = {**inputs(draw), "key": draw.key()}
    yield Case("merged", call_merged, merged, ("out",), tolerance=1e-4)
    kept = {**inputs(draw), "key": draw.key()}
    yield Case("kept", call_kept, kept, ("out", "kind"), tolerance=1e-4)
