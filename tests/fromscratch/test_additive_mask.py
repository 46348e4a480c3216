import math

import pytest
import torch
from torch.testing import assert_close

import glassformer as gf
from fromscratch.oracle import EXACT, PRECISIONS, gradients, torch_attention, torch_gradients
from glassformer.fromscratch import (
    AdditiveMaskSelfAttention,
    MaskedSingleHead,
    causal_bias,
    causal_weights,
    look_ahead_mask,
)

B, L, C, D = 2, 5, 13, 7
SCORES = [[10.0, 8.0, 5.0], [9.0, 12.0, 11.0], [4.0, 7.0, 9.0]]  # 我 爱 你


def inputs_and_module(head_dim=D, dtype=torch.float64):
    torch.manual_seed(0)
    module = AdditiveMaskSelfAttention(C, head_dim).to(dtype)
    return torch.randn(B, L, C, dtype=dtype, requires_grad=True), module


def test_three_words_by_hand():
    e = math.exp
    expected = [
        [1.0, 0.0, 0.0],
        [e(9) / (e(9) + e(12)), e(12) / (e(9) + e(12)), 0.0],
        [e(score) / (e(4) + e(7) + e(9)) for score in (4, 7, 9)],
    ]
    actual = causal_weights(torch.tensor(SCORES, dtype=torch.float64))
    assert_close(actual, torch.tensor(expected, dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_hidden_words_get_exactly_nothing_in_every_dtype(dtype):
    weights = causal_weights(torch.tensor(SCORES, dtype=dtype))
    assert weights.dtype == dtype
    assert torch.equal(weights > 0, look_ahead_mask(3))


def test_the_bias_is_the_boolean_mask_in_numbers():
    bias = causal_bias(L)
    assert torch.equal(bias == 0, look_ahead_mask(L))
    assert torch.equal(bias == -math.inf, ~look_ahead_mask(L))


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_causal_attention_of_the_library(dtype, tolerance):
    x, module = inputs_and_module(dtype=dtype)
    q, k, v = (layer(x)[:, None] for layer in (module.q_proj, module.k_proj, module.v_proj))
    theirs = [
        gf.attention(q, k, v, mask=gf.Causal())[:, 0],
        gf.attention_weights(q, k, mask=gf.Causal())[:, 0],
    ]
    ours = module(x)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **tolerance)
    inputs = [x, *module.parameters()]
    found, wanted = gradients(ours, inputs), gradients(theirs, inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


def test_it_is_the_boolean_form():
    x, module = inputs_and_module()
    boolean = MaskedSingleHead(C, D).double()
    boolean.load_state_dict(module.state_dict())
    ours, theirs = module(x), boolean(x, look_ahead_mask(L))
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **EXACT)
    found = gradients(ours, [x, *module.parameters()])
    wanted = gradients(theirs, [x, *boolean.parameters()])
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **EXACT)


def test_it_is_torchs_module_with_its_additive_mask():
    x, module = inputs_and_module(head_dim=C)
    layers = (module.q_proj, module.k_proj, module.v_proj)
    identity = torch.eye(C, dtype=torch.float64)
    theirs = torch_attention(1, [*(layer.weight for layer in layers), identity])
    additive = torch.nn.Transformer.generate_square_subsequent_mask(L, dtype=torch.float64)
    out, weights = theirs(x, x, x, attn_mask=additive, average_attn_weights=False)
    ours = module(x)
    assert_close(ours[0], out, **EXACT)
    assert_close(ours[1], weights[:, 0], **EXACT)
    found = gradients(ours, [x, *module.parameters()])
    wanted = torch_gradients(theirs, [out, weights[:, 0]], [x])
    for actual, expected in zip(found, wanted[:4], strict=True):
        assert_close(actual, expected, **EXACT)
