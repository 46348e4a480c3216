"""All options one by one: separate inputs, causal with L ≤ S, two dropouts, softmax's dtype."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.school.practice.cases import Case, Draw, battery, name_error
from glassformer.school.practice.dropout import P, dropped_share, multiples


class Softmaxes(TorchDispatchMode):
    """Record the dtypes in which softmax runs, or exp where softmax is written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__.strip("_") in ("softmax", "safe_softmax", "exp"):
            self.dtypes.add(str(args[0].dtype).removeprefix("torch."))
        return func(*args, **(kwargs or {}))


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, H, D = draw.sizes(5, high=6)
    q, k, v = draw.normal(B, L, H * D), draw.normal(B, S, H * D), draw.normal(B, S, H * D)
    return {"q": q, "k": k, "v": v, "dim": H * D, "n_heads": H, "max_len": max(L, S) + 2}


def causal(draw: Draw) -> dict[str, Any]:
    given = inputs(draw)
    B, S, C = given["k"].shape
    L = draw.size(1, S - 1)
    return {**given, "q": draw.normal(B, L, C), "max_len": S + 2, "causal": True}


def build(m: Any, dim: int, n_heads: int, max_len: int, causal: bool = False) -> Any:
    return m.MultiHeadAttention(dim, n_heads, max_len=max_len, causal=causal)


def call(model: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
    return model(q, k, v)


def build_with_weights(m: Any, x: Tensor, n_heads: int, key: int, **options: Any) -> Any:
    model = m.MultiHeadAttention(x.shape[-1], n_heads, max_len=x.shape[1] + 1, **options)
    return Draw(key).weights(model.to(x.dtype)).eval()


def change_future(m: Any, x: Tensor, changed: Tensor, place: int, n_heads: int, key: int) -> Any:
    model = build_with_weights(m, x, n_heads, key, causal=True)
    return (model(x, x, x) - model(changed, changed, changed))[:, :place]


def with_dropout(m: Any, x: Tensor, n_heads: int, out_weight: Tensor) -> Any:
    """One token: a head is its value times its weight, and out_proj mixes them."""
    model = m.MultiHeadAttention(x.shape[-1], n_heads, max_len=3, dropout=P).double()
    with torch.no_grad():
        model.v_proj.weight.copy_(torch.eye(x.shape[-1]))
        model.out_proj.weight.copy_(out_weight)
    return model


def measure_weights_dropout(m: Any, x: Tensor, n_heads: int) -> Any:
    model = with_dropout(m, x, n_heads, torch.eye(x.shape[-1]))
    return multiples(model.train()(x, x, x), x), multiples(model.eval()(x, x, x), x)


def measure_out_dropout(m: Any, x: Tensor, n_heads: int, out_weight: Tensor) -> Any:
    return dropped_share(with_dropout(m, x, n_heads, out_weight).train()(x, x, x))


def record_softmax_dtypes(m: Any, x: Tensor, n_heads: int, key: int) -> Any:
    model = build_with_weights(m, x, n_heads, key)
    with Softmaxes() as softmaxes:
        model(x, x, x)
    return ", ".join(sorted(softmaxes.dtypes))


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call, build=build)
    yield from battery(
        draw, causal, call, build=build, variants=("values", "gradient", "bfloat16", "batch")
    )
    B, L, H, D = draw.sizes(4, high=6)
    x, place = draw.normal(B, L, H * D), L // 2
    changed = torch.cat([x[:, :place], draw.normal(B, L - place, H * D)], dim=1)
    given = {"x": x, "n_heads": H, "key": draw.key()}
    yield Case(
        "future", change_future, {**given, "changed": changed, "place": place}, ("difference",)
    )
    alone = {"x": draw.normal(400, 1, H * D), "n_heads": H}
    yield Case("dropout", measure_weights_dropout, alone, ("out / v", "eval: out / v"))
    mixing = {"out_weight": draw.normal(H * D, H * D)}
    yield Case("dropout", measure_out_dropout, alone | mixing, ("P(out = 0)",))
    yield Case("precision", record_softmax_dtypes, {**given, "x": x.bfloat16()}, ("dtype",))
    wrong = {"dim": H * D + 1, "n_heads": H, "max_len": L}
    refused = lambda m, **sizes: name_error(lambda: m.MultiHeadAttention(**sizes))  # noqa: E731
    yield Case("error", refused, wrong, ("raises",))
