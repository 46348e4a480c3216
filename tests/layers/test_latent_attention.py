"""Latent attention against its formulas: absorbed into a cache of latents, and head by head."""

import pytest
import torch
from torch import nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import ConfigError
from glassformer.functional import GrowingCache, Rotary
from glassformer.layers import LatentAttention

B, L, C, H, D, E, R, P, Q = 2, 5, 12, 3, 10, 7, 8, 4, 9


def make(**changes) -> LatentAttention:
    sizes = {"head_dim": D, "value_dim": E, "kv_dim": R, "rotary_dim": P, "q_dim": Q}
    layer = LatentAttention(C, H, **(sizes | changes)).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def tables(start: int = 0, n: int = L) -> tuple[torch.Tensor, torch.Tensor]:
    return Rotary(P).tables(torch.arange(start, start + n))


def absorbed(layer: LatentAttention, x: torch.Tensor) -> torch.Tensor:
    """The same by one key-value head: queries times kv_up score the latents themselves.

    DeepSeek-AI 2024, §2.1.2: q·(W c) = (Wᵀ q)·c, so keys need never be formed.
    """
    captured = {}
    handle = layer.core.register_forward_pre_hook(lambda _, args: captured.update(q=args[0]))
    layer(x, mask=gf.Causal(), tables=tables())
    handle.remove()
    latent, turned = layer.kv_down(x).split([R, P], dim=-1)
    latent = layer.kv_norm(latent)
    turned = gf.functional.rotate(turned[:, None], *tables())
    up = layer.kv_up.weight.unflatten(0, (H, D - P + E))  # H n R
    q_plain, q_turned = captured["q"].split([D - P, P], dim=-1)
    q = torch.cat([torch.einsum("bhln,hnr->bhlr", q_plain, up[:, : D - P]), q_turned], -1)
    k = torch.cat([latent[:, None], turned], -1)
    out = gf.attention(q, k, latent[:, None], mask=gf.Causal(), scale=D**-0.5)  # B H L R
    heads = torch.einsum("bhlr,her->blhe", out, up[:, D - P :])
    return layer.out(heads.flatten(2))


@pytest.mark.parametrize("q_dim", [None, Q])
def test_it_is_the_absorbed_form(q_dim: int | None) -> None:
    layer, x = make(q_dim=q_dim), torch.randn(B, L, C).double()
    assert_close(layer(x, mask=gf.Causal(), tables=tables()), absorbed(layer, x), 1e-11)


def test_a_cache_keeps_latents_alone_and_steps_are_the_whole() -> None:
    layer, x, cache = make(), torch.randn(B, L, C).double(), GrowingCache()
    whole = layer(x, mask=gf.Causal(), tables=tables())
    pieces = [
        layer(x[:, a:b], mask=gf.Causal(), tables=tables(a, b - a), cache=cache)
        for a, b in ((0, 2), (2, 3), (3, 5))
    ]
    assert_close(torch.cat(pieces, 1), whole, 1e-12)
    assert (cache.k.shape, cache.v.shape) == ((B, 1, L, R), (B, 1, L, P))


def test_biases_are_those_of_the_projections_down_and_of_the_output() -> None:
    named = {name for name, _ in make(biases="attention").named_parameters() if "bias" in name}
    assert named == {"q_down.bias", "kv_down.bias", "out.bias"}
    assert not any("bias" in name for name, _ in make(q_dim=None).named_parameters())


@pytest.mark.plain
@pytest.mark.parametrize("rotary_dim", [0, D])
def test_a_rotated_part_that_leaves_nothing(rotary_dim: int) -> None:
    with pytest.raises(ConfigError, match=rf"got rotary_dim={rotary_dim}, head_dim=10"):
        make(rotary_dim=rotary_dim)
