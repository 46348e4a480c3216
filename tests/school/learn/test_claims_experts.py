"""Statements of the chapters on experts and FlashAttention that no snippet prints."""

import math

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.layers import MixtureOfExperts, Router, Routing
from glassformer.models import PRESETS
from glassformer.models.parameters import count_parameters
from glassformer.models.routing import RoutedLayer
from glassformer.school.learn.memory_pictures import (
    BANDWIDTH,
    PEAK,
    count_bytes,
    count_operations,
    run_online,
)
from glassformer.school.learn.pictures import draw

ENGLISH = Language("en")


def routed(choices, means):
    """A layer in which the tokens made these choices and had these probabilities."""
    experts = torch.tensor(choices)[:, None]
    affinities = torch.tensor([means] * len(choices))
    return RoutedLayer("layer", len(means), [Routing(affinities, experts * 0.0, experts)])


def test_most_parameters_of_a_block_are_in_its_feed_forward_network():
    config = gf.Config(family="decoder", vocab_size=7, dim=12, n_layers=1, n_heads=2, max_len=9)
    block = gf.build(config).decoder.blocks[0]
    n_attention = count_parameters(block.attention)
    assert count_parameters(block.feed_forward) > 1.9 * n_attention


def test_experts_of_published_models():
    mistral, mixtral = PRESETS["mistral-7b"], PRESETS["mixtral-8x7b"]
    for name in ("vocab_size", "dim", "n_layers", "n_heads", "n_kv_heads", "head_dim"):
        assert getattr(mistral, name) == getattr(mixtral, name)
    assert mixtral.experts.hidden_dim == mistral.hidden_dim
    assert (mixtral.experts.n_experts, mixtral.experts.dense_layers) == (8, ())
    lite = PRESETS["deepseek-v2-lite"].experts
    assert (lite.n_experts, lite.n_active, lite.n_shared, lite.dense_layers) == (64, 6, 2, (0,))


def test_probabilities_by_hand():
    exps = [math.exp(logit) for logit in (2, 1, 0, -1)]
    assert [round(each, 2) for each in exps] == [7.39, 2.72, 1.0, 0.37]
    assert round(sum(exps), 2) == 11.48
    assert [round(each / sum(exps), 2) for each in exps] == [0.64, 0.24, 0.09, 0.03]


def test_the_balance_loss_by_hand():
    assert float(routed([0, 1], [0.4, 0.3, 0.2, 0.1]).balance_loss()) == pytest.approx(1.4)
    assert float(routed([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.1]).balance_loss()) == pytest.approx(1)
    assert float(routed([0, 0], [1.0, 0.0, 0.0, 0.0]).balance_loss()) == pytest.approx(4)
    assert float(routed([0, 0], [0.26, 0.25, 0.25, 0.24]).balance_loss()) == pytest.approx(1.04)


def test_an_expert_adds_less_where_the_router_is_unsure():
    router = Router(1, n_experts=4, n_active=1, normalization="all")
    router.weight.data = torch.tensor([[2.0], [1.0], [0.0], [-1.0]])
    sure, unsure = router(torch.tensor([[3.0], [0.1]])).weights[:, 0]
    assert sure > 0.9 and unsure < 0.3


def test_tokens_of_a_batch_do_not_change_each_other():
    torch.manual_seed(0)
    layer = MixtureOfExperts(6, 5, router=Router(6, n_experts=4, n_active=1)).double()
    x = torch.randn(1, 6).double() + torch.zeros(9, 6)  # all want the same expert
    torch.testing.assert_close(layer(x)[8:], layer(x[:1]))


def test_the_routing_that_is_drawn():
    pages = [page for _, page in draw("routing", ENGLISH).pictures]
    for page, k in zip(pages, (1, 2, 2, 4), strict=True):
        preferred, chosen = (each.values for each in page.pictures)
        assert preferred.shape == (6, 4) and chosen.shape == (7, 4)
        assert (chosen[:6] > 0).sum(1).tolist() == [k] * 6
        torch.testing.assert_close(chosen[6].sum(), torch.tensor(1.0))
        torch.testing.assert_close(chosen[6], (chosen[:6] > 0).float().mean(0) / k)
    torch.testing.assert_close(pages[2].pictures[1].values[:6].sum(1), torch.ones(6))


def test_intensities_by_hand():
    assert PEAK / BANDWIDTH == 208
    assert round(4096 / 3) == 1365
    for L in (10**6, 10**7):
        assert count_operations(L) / count_bytes(L, None) == pytest.approx(32, rel=1e-3)
        for rows in (16, 64, 256):
            assert count_operations(L) / count_bytes(L, rows) == pytest.approx(rows, rel=1e-3)
    assert count_bytes(4096, 16) > count_bytes(4096, None) > count_bytes(4096, 64)


def test_roofs_that_are_drawn():
    for name, page in draw("roofline", ENGLISH).pictures:
        written, *tiles, step = [length for _, length, _ in page.bars]
        assert tiles == sorted(tiles) and max(tiles) <= PEAK / 1e12
        assert written < PEAK / 6e12 and step == BANDWIDTH / 1e12, name


def test_online_softmax_as_it_is_drawn():
    for _, picture in draw("online-softmax", ENGLISH).pictures:
        scores = [float(s) for block in picture.rows for s in block.split(", ")]
        values = torch.arange(10.0, 10.0 * len(scores) + 5, 10, dtype=torch.float64)
        exact = torch.tensor(scores, dtype=torch.float64).softmax(0) @ values
        torch.testing.assert_close(picture.values[-1, -1], exact)
    steps = run_online([(5.0, 2.0), (3.0, 1.0), (4.0, 0.0)]).values
    assert steps[:, 1].tolist() == [0, 1, 1]


def test_many_query_heads_on_the_same_keys_raise_the_intensity():
    """One new token: operations per byte of keys and values in 16 bits."""

    def intensity(n_heads, n_kv_heads, batch):
        return batch * n_heads * 4 * 100 * 64 / (batch * n_kv_heads * 2 * 2 * 100 * 64)

    assert intensity(8, 8, 1) == intensity(8, 8, 32) == 1
    assert intensity(8, 2, 1) == 4
