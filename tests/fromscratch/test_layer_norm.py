import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fromscratch.oracle import PRECISIONS, gradients
from glassformer.fromscratch import LayerNorm

C = 7


@pytest.mark.parametrize("shape", [(C,), (3, C), (2, 3, C)])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_torchs_layer_norm(shape, eps, dtype, tolerance):
    torch.manual_seed(0)
    ours, theirs = LayerNorm(C, eps=eps).to(dtype), nn.LayerNorm(C, eps=eps, dtype=dtype)
    nn.init.normal_(ours.weight)
    nn.init.normal_(ours.bias)
    theirs.load_state_dict(ours.state_dict())
    x = (3 * torch.randn(shape, dtype=dtype) + 5).requires_grad_()
    actual, expected = ours(x), theirs(x)
    assert_close(actual, expected, **tolerance)
    found = gradients([actual], [x, ours.weight, ours.bias])
    wanted = gradients([expected], [x, theirs.weight, theirs.bias])
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, **tolerance)


def test_it_starts_as_the_plain_normalisation():
    y = LayerNorm(C, eps=0.0).double()(torch.randn(3, C, dtype=torch.float64) * 4 - 2)
    assert_close(y.mean(dim=-1), torch.zeros(3, dtype=torch.float64))
    assert_close(y.var(dim=-1, correction=0), torch.ones(3, dtype=torch.float64))


def test_a_token_of_equal_numbers_becomes_the_shift_not_nan():
    assert LayerNorm(3)(torch.full((1, 3), 4.0)).tolist() == [[0.0, 0.0, 0.0]]
