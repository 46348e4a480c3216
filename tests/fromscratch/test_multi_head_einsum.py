import math

import pytest
import torch
from torch.testing import assert_close

import glassformer as gf
from fromscratch.oracle import (
    EXACT,
    PRECISIONS,
    gradients,
    merge,
    split,
    torch_attention,
    torch_gradients,
)
from glassformer.fromscratch import MultiHeadEinsum, MultiHeadLinear

B, H, L, S, D = 2, 3, 5, 7, 11
C = H * D


def parts(dtype=torch.float64):
    torch.manual_seed(0)
    module = MultiHeadEinsum(C, H).to(dtype)
    x = torch.randn(B, L, C, dtype=dtype, requires_grad=True)
    context = torch.randn(B, S, C, dtype=dtype, requires_grad=True)
    return module, x, context


def joined(weight, *, output=False):
    """The heads' matrices as the one (out, in) matrix of a linear layer."""
    return weight.flatten(0, 1).T if output else weight.permute(0, 2, 1).flatten(0, 1)


def joined_all(module):
    inner = [module.q_weight, module.k_weight, module.v_weight]
    return [*map(joined, inner), joined(module.out_weight, output=True)]


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_attention_of_the_library(dtype, tolerance):
    module, x, context = parts(dtype)
    q_weight, k_weight, v_weight, out_weight = joined_all(module)
    q, k, v = (
        split(source @ weight.T, H)
        for source, weight in [(x, q_weight), (context, k_weight), (context, v_weight)]
    )
    theirs = [merge(gf.attention(q, k, v)) @ out_weight.T, gf.attention_weights(q, k)]
    ours = module(x, context)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **tolerance)
    inputs = [x, context, *module.parameters()]
    found, wanted = gradients(ours, inputs), gradients(theirs, inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_it_is_torchs_module_without_biases(kind):
    module, x, context = parts()
    inputs = [x] if kind == "self" else [x, context]
    theirs = torch_attention(H, joined_all(module))
    ours = module(*inputs)
    results = theirs(x, inputs[-1], inputs[-1], average_attn_weights=False)
    for actual, expected in zip(ours, results, strict=True):
        assert_close(actual, expected, **EXACT)
    n = len(inputs)
    found = gradients(ours, [*inputs, *module.parameters()])
    wanted = torch_gradients(theirs, results, inputs)
    for actual, expected in zip(found[:n], wanted[:n], strict=True):
        assert_close(actual, expected, **EXACT)
    for actual, expected in zip(found[n:-1], wanted[n:-1], strict=True):
        assert_close(joined(actual), expected, **EXACT)
    assert_close(joined(found[-1], output=True), wanted[-1], **EXACT)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_it_is_the_form_with_linear_layers(kind):
    module, x, context = parts()
    inputs = [x] if kind == "self" else [x, context]
    linear = MultiHeadLinear(C, H).double()
    layers = [linear.q_proj, linear.k_proj, linear.v_proj, linear.out_proj]
    with torch.no_grad():
        for layer, weight in zip(layers, joined_all(module), strict=True):
            layer.weight.copy_(weight)
            layer.bias.zero_()
    for actual, expected in zip(module(*inputs), linear(*inputs), strict=True):
        assert_close(actual, expected, **EXACT)


def test_the_output_is_the_sum_of_what_each_head_writes():
    module, x, context = parts()
    whole = module(x, context)[0]
    alone = torch.zeros_like(whole)
    for h in range(H):
        only = MultiHeadEinsum(C, H).double()
        only.load_state_dict(module.state_dict())
        with torch.no_grad():
            only.out_weight[torch.arange(H) != h] = 0
        alone += only(x, context)[0]
    assert_close(whole, alone, **EXACT)


def test_parameters_start_within_xaviers_bound_for_the_whole_matrix():
    torch.manual_seed(0)
    bound = math.sqrt(6 / (132 + 132))
    for weight in MultiHeadEinsum(132, 3).parameters():
        assert 0.99 * bound < weight.abs().max() <= bound
        assert_close(weight.std().item(), bound / math.sqrt(3), rtol=0.02, atol=0)


@pytest.mark.parametrize(("dim", "n_heads"), [(10, 3), (10, 0), (10, -2)])
def test_heads_that_do_not_divide_the_width_are_refused(dim, n_heads):
    with pytest.raises(ValueError, match=f"multiple of n_heads; got dim={dim}, n_heads={n_heads}"):
        MultiHeadEinsum(dim, n_heads)
