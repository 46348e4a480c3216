"""Without a mask and with masks of three shapes; dropout is judged by its effect on the weights."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery, name_error
from glassformer.school.practice.dropout import CERTAIN, P, dropped_share, multiples


def plain(draw: Draw) -> dict[str, Any]:
    B, L, H, D = draw.sizes(4, high=6)
    return {"x": draw.normal(B, L, H * D), "dim": H * D, "n_heads": H}


def inputs_with_mask(draw: Draw) -> dict[str, Any]:
    given = plain(draw)
    B, L, _ = given["x"].shape
    rows = draw.choice([1, L])  # the same keys for all queries, as for padding, or not
    return {**given, "mask": draw.mask(B, 1, rows, L)}


def build(m: Any, dim: int, n_heads: int) -> Any:
    return m.MultiHead(dim, n_heads)


def causal(m: Any, x: Tensor, n_heads: int, mask: Tensor, key: int) -> Any:
    return Draw(key).weights(m.MultiHead(x.shape[-1], n_heads).double()).eval()(x, mask)


def drop_everything(m: Any, x: Tensor, n_heads: int, key: int) -> Any:
    return Draw(key).weights(m.MultiHead(x.shape[-1], n_heads, CERTAIN).double()).train()(x)


def measure_dropout(m: Any, x: Tensor, n_heads: int) -> Any:
    """One token, and layers that pass everything on: each head is its value times its weight."""
    model = m.MultiHead(x.shape[-1], n_heads, P).double()
    with torch.no_grad():
        for layer in (model.q_proj, model.k_proj, model.v_proj, model.out_proj):
            layer.weight.copy_(torch.eye(x.shape[-1]))
            layer.bias.zero_()
    out = model.train()(x)
    share = dropped_share(out.unflatten(-1, (n_heads, -1))[..., 0])
    return multiples(out, x), share, multiples(model.eval()(x), x)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, plain, lambda model, x: model(x), build=build)
    yield from battery(
        draw,
        inputs_with_mask,
        lambda model, x, mask: model(x, mask=mask),
        build=build,
        variants=("values", "gradient", "bfloat16", "batch"),
    )
    B, L, H, D = draw.sizes(4, high=6)
    given = {"x": draw.normal(B, L, H * D), "n_heads": H, "key": draw.key()}
    triangle = torch.ones(L, L, dtype=torch.bool).tril()
    yield Case("causal", causal, {**given, "mask": triangle}, ("out",))
    yield Case("dropout", drop_everything, given, ("out",))
    alone = {"x": draw.normal(400, 1, H * D), "n_heads": H}
    yield Case("dropout", measure_dropout, alone, ("out / v", "P(0)", "eval: out / v"))
    yield Case(
        "error",
        lambda m, dim, n_heads: name_error(lambda: m.MultiHead(dim, n_heads)),
        {"dim": H * D + 1, "n_heads": H},
        ("raises",),
    )
