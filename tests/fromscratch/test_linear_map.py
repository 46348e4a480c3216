import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fromscratch.oracle import EXACT, gradients
from glassformer.fromscratch import map_each_token, map_flattened, map_whole

WAYS = [map_whole, map_flattened, map_each_token]
B, L, C, F = 2, 3, 5, 7


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return nn.Linear(C, F, dtype=torch.float64)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_the_sum_of_the_formula(way, layer):
    x = torch.rand(B, L, C, dtype=torch.float64)
    expected = torch.zeros(B, L, F, dtype=torch.float64)
    for b in range(B):
        for l in range(L):
            for f in range(F):
                terms = (x[b, l, c] * layer.weight[f, c] for c in range(C))
                expected[b, l, f] = (sum(terms) + layer.bias[f]).item()
    assert_close(way(layer, x), expected, **EXACT)


@pytest.mark.parametrize("way", WAYS[1:])
def test_the_gradients_agree_too(way, layer):
    x = torch.rand(B, L, C, dtype=torch.float64, requires_grad=True)
    inputs = [x, layer.weight, layer.bias]
    expected = gradients([map_whole(layer, x)], inputs)
    for actual, wanted in zip(gradients([way(layer, x)], inputs), expected, strict=True):
        assert_close(actual, wanted, **EXACT)


@pytest.mark.parametrize("way", WAYS)
def test_a_token_changes_its_own_place_and_no_other(way, layer):
    x = torch.rand(B, L, C, dtype=torch.float64)
    other = x.clone()
    other[1, 2] += 1
    changed = (way(layer, x) != way(layer, other)).any(dim=-1)
    assert changed.tolist() == [[False, False, False], [False, False, True]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(0, L, C), (B, 0, C)])
def test_an_empty_batch_or_sequence_keeps_its_shape(way, shape, layer):
    assert way(layer, torch.empty(shape, dtype=torch.float64)).shape == (*shape[:2], F)
