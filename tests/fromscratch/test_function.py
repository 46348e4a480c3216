import pytest
import torch
from torch import nn
from torch.testing import assert_close

import glassformer as gf
from fromscratch.oracle import PRECISIONS, attention_by_loops, gradients
from glassformer.fromscratch import attention

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13


def operands(dtype=torch.float64):
    torch.manual_seed(0)
    shapes = [(B, H, L, D), (B, H, S, D), (B, H, S, E)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_definition(dtype, tolerance):
    q, k, v = operands(dtype)
    expected_out, expected_weights = attention_by_loops(q, k, v)
    out, weights = attention(q, k, v)
    assert_close(out, expected_out.to(dtype), **tolerance)
    assert_close(weights, expected_weights.to(dtype), **tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_attention_of_the_library(dtype, tolerance):
    q, k, v = operands(dtype)
    ours, theirs = attention(q, k, v), (gf.attention(q, k, v), gf.attention_weights(q, k))
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **tolerance)
    found, wanted = gradients(ours, [q, k, v]), gradients(theirs, [q, k, v])
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


def test_any_number_of_leading_dimensions_is_carried_along():
    q, k, v = operands()
    out, weights = attention(q, k, v)
    for b in range(B):
        for h in range(H):
            one_out, one_weights = attention(q[b, h], k[b, h], v[b, h])
            assert_close(out[b, h], one_out)
            assert_close(weights[b, h], one_weights)


def test_dropout_does_nothing_in_evaluation():
    q, k, v = operands()
    plain, dropped = attention(q, k, v), attention(q, k, v, nn.Dropout(0.9).eval())
    assert torch.equal(plain[0], dropped[0])
    assert torch.equal(plain[1], dropped[1])


def test_dropout_removes_weights_and_scales_the_survivors():
    q, k, _ = operands()
    # With the identity as values, the output is the row of weights that met them.
    v = torch.eye(S, dtype=torch.float64)
    kept, weights = attention(q, k, v, nn.Dropout(0.25))
    assert_close(weights.sum(dim=-1), torch.ones(B, H, L, dtype=torch.float64))
    gone = kept == 0
    assert 0 < gone.sum() < gone.numel()
    assert_close(kept[~gone], weights[~gone] / 0.75)


def test_gradients_flow_through_the_survivors_alone():
    q, k, v = operands()
    # Beside the values stands the identity, so the output also shows which weights survived.
    shown = torch.cat([v, torch.eye(S, dtype=torch.float64).expand(B, H, S, S)], dim=-1)
    out, weights = attention(q, k, shown, nn.Dropout(0.25))
    survived = (out[..., E:] != 0).double() / 0.75
    rebuilt = (weights * survived) @ v
    assert_close(out[..., :E], rebuilt)
    found, wanted = gradients([out[..., :E]], [q, k, v]), gradients([rebuilt], [q, k, v])
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected)


@pytest.mark.plain
def test_queries_and_keys_of_different_width_are_refused():
    with pytest.raises(ValueError, match=r"q and k must have the same width; got 11 and 13\."):
        attention(torch.rand(L, 11), torch.rand(S, 13), torch.rand(S, E))


@pytest.mark.plain
def test_keys_and_values_of_different_length_are_refused():
    with pytest.raises(ValueError, match=r"k and v must have the same length; got 7 and 5\."):
        attention(torch.rand(L, D), torch.rand(7, D), torch.rand(5, E))
