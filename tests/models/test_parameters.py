import pytest
import torch
from torch import nn

from glassformer.errors import ConfigError
from glassformer.models.parameters import count_parameters, match_dim
from glassformer.models.recurrent import LSTMLanguageModel, LSTMSeq2Seq

V, C, N = 13, 5, 2


def test_tied_parameters_count_once():
    tied, untied = LSTMLanguageModel(V, C, N), LSTMLanguageModel(V, C, N, tied=False)
    assert count_parameters(untied) - count_parameters(tied) == V * C
    shared = nn.Linear(3, 3, bias=False)
    assert count_parameters(nn.Sequential(shared, shared)) == 9


@pytest.mark.parametrize("target", [200_000, 1_000_000, 65_000_000])
@pytest.mark.parametrize(
    "build",
    [
        lambda dim: LSTMLanguageModel(331, dim, 2),
        lambda dim: LSTMSeq2Seq(331, 211, dim, 3, attention=True, tied=False),
    ],
    ids=["language", "seq2seq"],
)
def test_match_dim_is_the_closest(target, build):
    dim = match_dim(target, build)

    def off(dim):
        with torch.device("meta"):
            return abs(count_parameters(build(dim)) - target)

    assert off(dim) <= min(off(dim - 1), off(dim + 1))
    assert off(dim) <= 0.02 * target


def test_match_dim_of_less_than_the_smallest_is_the_smallest():
    assert match_dim(1, lambda dim: nn.Linear(dim, 100)) == 1


def test_match_dim_finds_an_exact_match():
    for dim in range(1, 40):
        assert match_dim(dim * 7, lambda d: nn.Linear(d, 7, bias=False)) == dim


@pytest.mark.parametrize("target", [0, -5])
def test_there_must_be_parameters_to_match(target):
    with pytest.raises(ConfigError, match=rf"at least 1; got target_parameters={target}\."):
        match_dim(target, lambda dim: nn.Linear(dim, dim))


def test_what_is_matched_must_grow():
    with pytest.raises(ConfigError, match=r"got 12 at dim=1 and 12 at dim=2\."):
        match_dim(1000, lambda dim: nn.Linear(3, 3))
