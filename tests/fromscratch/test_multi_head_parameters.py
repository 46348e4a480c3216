import math

import pytest
import torch
from torch.testing import assert_close

import glassformer as gf
from fromscratch.oracle import (
    EXACT,
    PRECISIONS,
    attention_by_loops,
    gradients,
    merge,
    split,
    torch_attention,
    torch_gradients,
)
from glassformer.fromscratch import MultiHeadLinear, MultiHeadParameters, SingleHeadParameters

B, H, L, D = 2, 3, 5, 7
C = H * D


def module_and_input(dtype=torch.float64):
    torch.manual_seed(0)
    module = MultiHeadParameters(C, H).to(dtype)
    return module, torch.randn(B, L, C, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_attention_of_the_library(dtype, tolerance):
    module, x = module_and_input(dtype)
    q, k, v = (split(x @ w, H) for w in (module.q_weight, module.k_weight, module.v_weight))
    theirs = [merge(gf.attention(q, k, v)) @ module.out_weight, gf.attention_weights(q, k)]
    mixed, by_hand = attention_by_loops(q, k, v)
    ours = module(x)
    assert_close(ours[0], merge(mixed).to(dtype) @ module.out_weight, **tolerance)
    assert_close(ours[1], by_hand.to(dtype), **tolerance)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **tolerance)
    inputs = [x, *module.parameters()]
    found, wanted = gradients(ours, inputs), gradients(theirs, inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


def test_it_is_torchs_module_without_biases():
    module, x = module_and_input()
    theirs = torch_attention(H, [weight.T for weight in module.parameters()])
    ours, results = module(x), theirs(x, x, x, average_attn_weights=False)
    for actual, expected in zip(ours, results, strict=True):
        assert_close(actual, expected, **EXACT)
    found = gradients(ours, [x, *module.parameters()])
    wanted = torch_gradients(theirs, results, [x])
    assert_close(found[0], wanted[0], **EXACT)
    for actual, expected in zip(found[1:], wanted[1:], strict=True):
        assert_close(actual, expected.T, **EXACT)


def test_it_is_the_form_with_linear_layers():
    module, x = module_and_input()
    linear = MultiHeadLinear(C, H).double()
    layers = [linear.q_proj, linear.k_proj, linear.v_proj, linear.out_proj]
    with torch.no_grad():
        for layer, weight in zip(layers, module.parameters(), strict=True):
            layer.weight.copy_(weight.T)
            layer.bias.zero_()
    for actual, expected in zip(module(x), linear(x), strict=True):
        assert_close(actual, expected, **EXACT)


def test_each_head_is_a_single_head_on_its_slice_of_the_matrices():
    module, x = module_and_input()
    heads = []
    for h in range(H):
        single = SingleHeadParameters(C, D).double()
        columns = slice(h * D, (h + 1) * D)
        with torch.no_grad():
            single.q_weight.copy_(module.q_weight[:, columns])
            single.k_weight.copy_(module.k_weight[:, columns])
            single.v_weight.copy_(module.v_weight[:, columns])
        heads.append(single(x))
    out, weights = module(x)
    assert_close(weights, torch.stack([w for _, w in heads], dim=1), **EXACT)
    assert_close(out, torch.cat([o for o, _ in heads], dim=-1) @ module.out_weight, **EXACT)


def test_parameters_start_within_xaviers_bound_and_fill_it():
    torch.manual_seed(0)
    bound = math.sqrt(6 / (132 + 132))
    for weight in MultiHeadParameters(132, 3).parameters():
        assert 0.99 * bound < weight.abs().max() <= bound
        assert_close(weight.std().item(), bound / math.sqrt(3), rtol=0.02, atol=0)


@pytest.mark.parametrize(("dim", "n_heads"), [(10, 3), (10, 0), (10, -2)])
def test_heads_that_do_not_divide_the_width_are_refused(dim, n_heads):
    with pytest.raises(ValueError, match=f"multiple of n_heads; got dim={dim}, n_heads={n_heads}"):
        MultiHeadParameters(dim, n_heads)
