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
    torch_attention,
    torch_gradients,
)
from glassformer.fromscratch import SingleHeadLinear, SingleHeadParameters

B, L, C, D = 2, 5, 13, 7


def pair(dim=C, head_dim=D, dtype=torch.float64):
    """One module of each kind with the same numbers, and an input."""
    torch.manual_seed(0)
    plain, linear = SingleHeadParameters(dim, head_dim), SingleHeadLinear(dim, head_dim)
    with torch.no_grad():
        linear.q_proj.weight.copy_(plain.q_weight.T)
        linear.k_proj.weight.copy_(plain.k_weight.T)
        linear.v_proj.weight.copy_(plain.v_weight.T)
    x = torch.randn(B, L, dim, dtype=dtype, requires_grad=True)
    return plain.to(dtype), linear.to(dtype), x


def weights_of(module):
    if isinstance(module, SingleHeadParameters):
        return [module.q_weight, module.k_weight, module.v_weight]
    return [layer.weight.T for layer in (module.q_proj, module.k_proj, module.v_proj)]


@pytest.mark.parametrize("which", [0, 1], ids=["parameters", "linear"])
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_each_is_the_attention_of_the_library_on_its_projections(which, dtype, tolerance):
    *modules, x = pair(dtype=dtype)
    module = modules[which]
    q, k, v = (torch.einsum("blc,cd->bld", x, weight)[:, None] for weight in weights_of(module))
    theirs = [gf.attention(q, k, v)[:, 0], gf.attention_weights(q, k)[:, 0]]
    by_hand = attention_by_loops(q, k, v)
    ours = module(x)
    for actual, expected, hand in zip(ours, theirs, by_hand, strict=True):
        assert_close(actual, expected, **tolerance)
        assert_close(actual, hand[:, 0].to(dtype), **tolerance)
    inputs = [x, *module.parameters()]
    found, wanted = gradients(ours, inputs), gradients(theirs, inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


def test_the_two_agree_in_values_and_gradients():
    plain, linear, x = pair()
    ours, theirs = plain(x), linear(x)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **EXACT)
    found = gradients(ours, [x, *weights_of(plain)])
    wanted = gradients(theirs, [x, *linear.parameters()])
    assert_close(found[0], wanted[0], **EXACT)
    for actual, expected in zip(found[1:], wanted[1:], strict=True):
        assert_close(actual, expected.T, **EXACT)


@pytest.mark.parametrize("which", [0, 1], ids=["parameters", "linear"])
def test_each_is_torchs_module_with_one_head_and_no_output_projection(which):
    *modules, x = pair(dim=C, head_dim=C)
    module = modules[which]
    identity = torch.eye(C, dtype=torch.float64)
    theirs = torch_attention(1, [*(w.T for w in weights_of(module)), identity])
    ours = module(x)
    results = theirs(x, x, x, average_attn_weights=False)
    assert_close(ours[0], results[0], **EXACT)
    assert_close(ours[1], results[1][:, 0], **EXACT)
    found = gradients(ours, [x, *module.parameters()])
    wanted = torch_gradients(theirs, [results[0], results[1][:, 0]], [x])
    assert_close(found[0], wanted[0], **EXACT)
    for actual, expected in zip(found[1:], wanted[1:4], strict=True):
        assert_close(actual, expected.T if which == 0 else expected, **EXACT)


def test_parameters_start_within_xaviers_bound_and_fill_it():
    torch.manual_seed(0)
    bound = math.sqrt(6 / (131 + 67))
    for weight in SingleHeadParameters(131, 67).parameters():
        assert 0.99 * bound < weight.abs().max() <= bound
        assert_close(weight.std().item(), bound / math.sqrt(3), rtol=0.02, atol=0)
