"""What training replaces in a model does not stand in the way of decoding by its weights."""

import copy
from functools import partial, update_wrapper

import pytest
import torch
from torch import nn

from glassformer.models import Config, build, decoder_weights
from glassformer.models.learning_forward import has_own_forward, replace_while_learning
from glassformer.training import cpu_products, float8
from glassformer.training.model_building import recompute_blocks

CONFIG = Config(
    family="decoder",
    vocab_size=32,
    dim=16,
    n_layers=2,
    n_heads=2,
    max_len=16,
    hidden_dim=32,
    activation="gelu",
)
WAYS = {
    "oneDNN": cpu_products.replace_products,
    "8 bits": float8.replace_products,
    "recomputed": recompute_blocks,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_in_training_is_decoded_by_its_weights(way: str, monkeypatch) -> None:
    monkeypatch.setattr(cpu_products, "prefers_onednn", lambda: True)
    model = build(CONFIG).eval()
    tokens = torch.randint(0, 32, (2, 7))
    expected = model(tokens)
    WAYS[way](model)
    assert any("forward" in vars(part) for part in model.modules())
    assert decoder_weights.refusal(model) is None
    with torch.no_grad():
        assert torch.equal(model(tokens), expected)


def test_what_somebody_else_replaced_is_still_seen() -> None:
    model = build(CONFIG).eval()
    block = next(part for path, part in model.named_modules() if path == "decoder.blocks.1")
    block.forward = partial(type(block).forward, block)
    assert has_own_forward(block)
    recompute_blocks(model)
    assert has_own_forward(block)
    assert decoder_weights.refusal(model) == "decoder.blocks.1 is no module of ours"


def test_a_wrapper_around_it_is_seen_and_a_copy_is_none() -> None:
    layer = nn.Linear(2, 3)
    replace_while_learning(layer, partial(nn.Linear.forward, layer))
    twin = copy.deepcopy(layer)
    assert not has_own_forward(twin) and twin.forward.args == (twin,)
    usual = layer.forward  # as accelerate and torch.compile wrap it
    layer.forward = update_wrapper(partial(partial(usual)), usual)
    assert has_own_forward(layer)


def test_it_computes_so() -> None:
    layer = nn.Linear(2, 3)
    replace_while_learning(layer, partial(torch.mul, 2.0))
    assert torch.equal(layer(torch.ones(2)), 2 * torch.ones(2))
