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
from glassformer.fromscratch import MultiHeadLinear
from glassformer.fromscratch.multi_head_einops import MultiHeadEinops

B, H, L, S, D = 2, 3, 5, 7, 11
C = H * D


def parts(dtype=torch.float64):
    torch.manual_seed(0)
    module = MultiHeadEinops(C, H).to(dtype)
    x = torch.randn(B, L, C, dtype=dtype, requires_grad=True)
    context = torch.randn(B, S, C, dtype=dtype, requires_grad=True)
    return module, x, context


def layers_of(module):
    return [module.q_proj, module.k_proj, module.v_proj, module.out_proj]


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_attention_of_the_library(dtype, tolerance):
    module, x, context = parts(dtype)
    q = split(module.q_proj(x), H)
    k, v = split(module.k_proj(context), H), split(module.v_proj(context), H)
    theirs = [module.out_proj(merge(gf.attention(q, k, v))), gf.attention_weights(q, k)]
    ours = module(x, context)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **tolerance)
    inputs = [x, context, *module.parameters()]
    found, wanted = gradients(ours, inputs), gradients(theirs, inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_it_is_torchs_module(kind):
    module, x, context = parts()
    inputs = [x] if kind == "self" else [x, context]
    weights, biases = zip(*((l.weight, l.bias) for l in layers_of(module)), strict=True)
    theirs = torch_attention(H, weights, biases)
    ours = module(*inputs)
    results = theirs(x, inputs[-1], inputs[-1], average_attn_weights=False)
    for actual, expected in zip(ours, results, strict=True):
        assert_close(actual, expected, **EXACT)
    found = gradients(ours, [*inputs, *weights, *biases])
    for actual, expected in zip(found, torch_gradients(theirs, results, inputs), strict=True):
        assert_close(actual, expected, **EXACT)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_it_is_the_form_with_linear_layers(kind):
    module, x, context = parts()
    inputs = [x] if kind == "self" else [x, context]
    linear = MultiHeadLinear(C, H).double()
    linear.load_state_dict(module.state_dict())
    for actual, expected in zip(module(*inputs), linear(*inputs), strict=True):
        assert_close(actual, expected, **EXACT)


@pytest.mark.parametrize(("dim", "n_heads"), [(10, 3), (10, 0), (10, -2)])
def test_heads_that_do_not_divide_the_width_are_refused(dim, n_heads):
    with pytest.raises(ValueError, match=f"multiple of n_heads; got dim={dim}, n_heads={n_heads}"):
        MultiHeadEinops(dim, n_heads)
