"""Against attention with keys and values written out; all sizes differ."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, H, L, S, D, E, R = draw.sizes(7, low=2, high=9)
    return {
        "q": draw.normal(B, H, L, D),
        "c": draw.normal(B, S, R),
        "w_uk": draw.normal(H, D, R) / R**0.5,
        "w_uv": draw.normal(H, E, R) / R**0.5,
    }


def call(m: Any, q: Tensor, c: Tensor, w_uk: Tensor, w_uv: Tensor) -> Any:
    return m.latent_attention(q, c, w_uk, w_uv)


def call_absorb(m: Any, q: Tensor, w_uk: Tensor) -> Any:
    return m.absorb(q, w_uk)


def scores(m: Any, q: Tensor, c: Tensor, w_uk: Tensor) -> Any:
    keys = torch.einsum("bsr,hdr->bhsd", c, w_uk)
    return m.absorb(q, w_uk) @ c[:, None].transpose(-2, -1) - q @ keys.transpose(-2, -1)


def cases(draw: Draw) -> Iterator[Case]:
    given = inputs(draw)
    yield Case("absorb", call_absorb, {"q": given["q"], "w_uk": given["w_uk"]}, ("q",))
    given = inputs(draw)
    yield Case("same", scores, {n: given[n] for n in ("q", "c", "w_uk")}, ("difference",))
    yield from battery(draw, inputs, call, skip=("batch",))
