import pytest
import torch

from closeness import assert_close, assert_same
from glassformer.errors import ConfigError, ShapeError
from glassformer.functional import sinusoidal
from glassformer.layers import LearnedPositions, SinusoidalPositions, TokenEmbedding
from glassformer.layers.embedding import trusting_tokens


def test_rows_of_the_table() -> None:
    embedding = TokenEmbedding(7, 5)
    tokens = torch.tensor([[3, 0, 6], [1, 1, 2]])
    assert_same(embedding(tokens), embedding.weight[tokens])


def test_scaled_by_the_root_of_the_width() -> None:
    embedding = TokenEmbedding(7, 16, scaled=True)
    tokens = torch.tensor([[3, 0]])
    assert_close(embedding(tokens), embedding.weight[tokens] * 4, 1e-6)


def test_positions() -> None:
    learned = LearnedPositions(9, 4)
    places = torch.tensor([[2, 3], [0, 8]])
    assert_same(learned(places), learned.weight[places])
    assert_same(SinusoidalPositions(6)(places), sinusoidal(places, 6))
    assert not list(SinusoidalPositions(6).parameters())


@pytest.mark.plain
def test_refusals() -> None:
    with pytest.raises(ConfigError, match="got vocab_size=0, dim=5"):
        TokenEmbedding(0, 5)
    embedding = TokenEmbedding(7, 5)
    with pytest.raises(ShapeError, match=r"0 … 6; got 0 to 7.*tokenizer"):
        embedding(torch.tensor([[0, 7]]))
    with pytest.raises(ShapeError, match="0 … 6; got -1 to 3"):
        embedding(torch.tensor([[-1, 3]]))
    with pytest.raises(ShapeError, match=r"float32 of shape \(1, 2\)"):
        embedding(torch.zeros(1, 2))
    with pytest.raises(ShapeError, match=r"int64 of shape \(2,\)"):
        embedding(torch.zeros(2).long())


def test_no_tokens_are_no_vectors() -> None:
    assert TokenEmbedding(7, 5)(torch.zeros(2, 0).long()).shape == (2, 0, 5)


@pytest.mark.plain
def test_trusted_tokens_are_not_checked() -> None:
    table, wrong = TokenEmbedding(5, 3), torch.tensor([[7]])
    with trusting_tokens(table), pytest.raises(IndexError):  # torch's own
        table(wrong)
    with pytest.raises(ShapeError, match="token ids must lie in 0 … 4; got 7 to 7"):
        table(wrong)
