"""Both layers, with parts that are known to be right; a padded source, a masked future."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.capstone.joining import translator_parts
from glassformer.school.practice.capstone.lending import lend
from glassformer.school.practice.cases import Case, Draw, battery

PARTS = translator_parts(
    lend(
        "padding_mask",
        "split_heads",
        "merge_heads",
        "layer_norm",
        "residual",
        "rotary",
        "gelu_feed_forward",
    )
)


def draw_sizes(draw: Draw) -> dict[str, int]:
    n_heads = draw.choice([2, 3])
    dim = n_heads * draw.choice([4, 6])
    return {"dim": dim, "n_heads": n_heads, "hidden_dim": dim + draw.size(3, 7)}


def encoder_inputs(draw: Draw) -> dict[str, Any]:
    B, S = draw.sizes(2, low=3)
    sizes = draw_sizes(draw)
    return {"x": draw.normal(B, S, sizes["dim"]), "mask": draw.mask(B, 1, S), **sizes}


def decoder_inputs(draw: Draw, square: bool = False) -> dict[str, Any]:
    B, L, S = draw.sizes(3, low=3)
    S = L if square else S
    sizes = draw_sizes(draw)
    return {
        "x": draw.normal(B, L, sizes["dim"]),
        "context": draw.normal(B, S, sizes["dim"]),
        "mask": torch.ones(L, L, dtype=torch.bool).tril(),
        "context_mask": draw.mask(B, 1, S),
        **sizes,
    }


def build_encoder(m: Any, **sizes: int) -> nn.Module:
    return m.EncoderLayer(PARTS, SimpleNamespace(**sizes))


def build_decoder(m: Any, **sizes: int) -> nn.Module:
    return m.DecoderLayer(PARTS, SimpleNamespace(**sizes))


def decode(
    model: nn.Module, x: Tensor, context: Tensor, mask: Tensor, context_mask: Tensor
) -> Tensor:
    return model(x, context, mask, context_mask)


def cases(draw: Draw) -> Iterator[Case]:
    encode = lambda model, x, mask: model(x, mask)  # noqa: E731
    encoder = (draw, encoder_inputs, encode)
    decoder = (draw, decoder_inputs, decode)
    yield from battery(*encoder, build=build_encoder, variants=("parameters",))
    yield from battery(*decoder, build=build_decoder, variants=("parameters",))
    for case in battery(*encoder, build=build_encoder, variants=("values",)):
        yield Case("encoder", case.call, case.inputs, ("out",))
    for case in battery(*decoder, build=build_decoder, variants=("values",)):
        yield Case("decoder", case.call, case.inputs, ("out",))
    square = (draw, lambda d: decoder_inputs(d, square=True), decode)
    for case in battery(*square, build=build_decoder, variants=("values",)):
        yield Case("square", case.call, case.inputs, ("out",))
    yield from battery(*decoder, build=build_decoder, variants=("gradient", "float32"))
