"""Without a mask and with masks of three shapes; dropout without chance."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.practice.cases import Case, Draw, battery, raises


class EveryThird(nn.Module):
    """Dropout without chance: every third number goes, the others grow by a half."""

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.arange(x.numel()).reshape(x.shape) % 3 > 0
        return x * kept * 1.5


def plain(draw: Draw) -> dict[str, Any]:
    B, L, H, D = draw.sizes(4, high=6)
    return {"x": draw.normal(B, L, H * D), "dim": H * D, "n_heads": H}


def masked(draw: Draw) -> dict[str, Any]:
    given = plain(draw)
    B, L, _ = given["x"].shape
    rows = draw.choice([1, L])  # the same keys for all queries, as padding has it, or not
    return {**given, "mask": draw.mask(B, 1, rows, L)}


def build(m: Any, dim: int, n_heads: int) -> Any:
    return m.MultiHead(dim, n_heads)


def causal(m: Any, x: Tensor, n_heads: int, mask: Tensor, key: int) -> Any:
    return Draw(key).weights(m.MultiHead(x.shape[-1], n_heads).double()).eval()(x, mask)


def dropped(m: Any, x: Tensor, n_heads: int, key: int) -> Any:
    model = Draw(key).weights(m.MultiHead(x.shape[-1], n_heads, 0.3).double())
    model.dropout = EveryThird()
    return model.train()(x)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, plain, lambda model, x: model(x), build=build)
    yield from battery(
        draw,
        masked,
        lambda model, x, mask: model(x, mask=mask),
        build=build,
        variants=("values", "gradient", "bfloat16", "batch"),
    )
    B, L, H, D = draw.sizes(4, high=6)
    given = {"x": draw.normal(B, L, H * D), "n_heads": H, "key": draw.key()}
    triangle = torch.ones(L, L, dtype=torch.bool).tril()
    yield Case("causal", causal, {**given, "mask": triangle}, ("out",))
    yield Case("dropout", dropped, given, ("out",))
    yield Case(
        "error",
        lambda m, dim, n_heads: raises(lambda: m.MultiHead(dim, n_heads)),
        {"dim": H * D + 1, "n_heads": H},
        ("raises",),
    )
