"""Claims about how networks use context: what reaches what, and over how many steps."""

import pytest
import torch
from torch import nn

import glassformer as gf
from glassformer.functional import sinusoidal
from glassformer.layers import Block, FeedForward, SelfAttention, norm_maker

SEEDS = pytest.mark.parametrize("seed", range(3))


def reach(function, x):
    """Whether output i depends on input j, by automatic differentiation."""
    L = x.shape[0]
    jacobian = torch.autograd.functional.jacobian(function, x)
    return (jacobian.abs().sum((1, 3)) > 1e-12).reshape(L, L)


@SEEDS
def test_a_feed_forward_network_over_words_has_one_length_and_weights_by_position(seed):
    torch.manual_seed(seed)
    n, dim = 5, 3
    network = nn.Sequential(nn.Linear(n * dim, 11), nn.ReLU(), nn.Linear(11, 2))
    x = torch.randn(1, n, dim)
    assert network(x.flatten(1)).shape == (1, 2)
    with pytest.raises(RuntimeError):
        network(torch.randn(1, n + 1, dim).flatten(1))
    first, second = network[0].weight.unflatten(1, (n, dim))[:, :2].unbind(1)
    assert not torch.allclose(first, second)
    # The same word somewhere else is read by other weights.
    assert not torch.allclose(network(x.flatten(1)), network(x.roll(1, 1).flatten(1)))


@SEEDS
def test_a_convolution_of_three_sees_three_words_and_two_more_with_every_layer(seed):
    torch.manual_seed(seed)
    layers = [nn.Conv1d(2, 2, 3, padding=1) for _ in range(3)]
    for depth in (1, 2, 3):
        stack = nn.Sequential(*layers[:depth])
        seen = reach(lambda x, stack=stack: stack(x.T[None])[0].T, torch.randn(13, 2))
        place = torch.arange(13)
        assert torch.equal(seen, (place[:, None] - place).abs() <= depth)
    # One set of weights: what is shifted comes out shifted.
    x = torch.zeros(1, 2, 13)
    x[..., 4] = torch.randn(2)
    assert torch.allclose(layers[0](x).roll(3, -1)[..., 5:10], layers[0](x.roll(3, -1))[..., 5:10])


def lstm_gradients(seed, forget):
    torch.manual_seed(seed)
    lstm = nn.LSTM(16, 16, batch_first=True)
    with torch.no_grad():
        lstm.bias_ih_l0[16:32] = forget
    x = torch.randn(1, 64, 16, requires_grad=True)
    lstm(x)[0][0, -1].sum().backward()
    norms = x.grad[0].norm(dim=-1)
    return norms / norms[-1]


@SEEDS
def test_gates_that_stay_open_keep_the_gradient_of_distant_words(seed):
    closed, opened = lstm_gradients(seed, 0.0), lstm_gradients(seed, 10.0)
    assert closed[3] < 1e-10 < 1e-3 < opened[3]


def test_the_state_of_an_lstm_can_carry_a_number_over_any_distance():
    """Built by hand: the first input opens the input gate, no later one does."""
    lstm = nn.LSTM(2, 1, batch_first=True).double()
    with torch.no_grad():
        for weight in lstm.parameters():
            weight.zero_()
        lstm.bias_ih_l0.copy_(torch.tensor([-50.0, 50.0, 0.0, 50.0]))  # input, forget, cell, output
        lstm.weight_ih_l0[0, 1] = 100.0
        lstm.weight_ih_l0[2, 0] = 1.0
    x = torch.randn(2, 5000, 2, dtype=torch.float64)
    x[..., 1] = 0.0
    x[:, 0] = torch.tensor([[0.3, 1.0], [-0.8, 1.0]])
    assert torch.allclose(lstm(x)[0][:, -1, 0], x[:, 0, 0].tanh().tanh())


@SEEDS
def test_a_recurrent_step_needs_the_step_before_it(seed):
    torch.manual_seed(seed)
    lstm = nn.LSTM(3, 3)
    seen = reach(lambda x: lstm(x[:, None])[0][:, 0], torch.randn(9, 3))
    assert torch.equal(seen, torch.ones(9, 9).tril().bool())


@SEEDS
def test_any_two_words_are_one_step_of_attention_apart(seed):
    torch.manual_seed(seed)
    seen = reach(lambda x: gf.attention(*(x[None, None],) * 3)[0, 0], torch.randn(9, 4))
    assert seen.all()


@SEEDS
def test_only_attention_mixes_tokens(seed):
    """With a mask that allows nothing but a token itself, a whole block mixes none."""
    torch.manual_seed(seed)
    block = Block(
        attention=SelfAttention(6, 2),
        feed_forward=FeedForward(6, 24, activation="relu"),
        make_norm=norm_maker("layer", 6, eps=1e-5),
    ).double()
    x = torch.randn(7, 6, dtype=torch.float64)
    alone = gf.Causal() & gf.Window(0)
    assert torch.equal(reach(lambda x: block(x[None], mask=alone)[0], x), torch.eye(7).bool())
    assert reach(lambda x: block(x[None])[0], x).all()


@SEEDS
def test_without_projections_a_word_mostly_finds_itself(seed):
    torch.manual_seed(seed)
    x = torch.randn(1, 1, 50, 64)
    weights = gf.attention_weights(x, x)[0, 0]
    assert torch.equal(weights.argmax(-1), torch.arange(50))
    assert weights.diagonal().mean() > 0.9


@SEEDS
def test_weights_are_computed_from_the_text_and_parameters_are_not(seed):
    torch.manual_seed(seed)
    attend = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    before = [p.clone() for p in attend.parameters()]
    one, other = torch.randn(2, 1, 5, 8).unbind(0)
    assert not torch.allclose(attend(one, one, one)[1], attend(other, other, other)[1])
    assert all(map(torch.equal, before, attend.parameters()))


def test_a_linear_layer_is_stored_transposed_and_has_a_bias():
    assert nn.Linear(6, 4).weight.shape == (4, 6)
    assert nn.Linear(6, 4).bias is not None and nn.Linear(6, 4, bias=False).bias is None


def test_every_position_has_its_own_reading():
    table = sinusoidal(2000, 64).double()
    apart = torch.cdist(table, table) + 10 * torch.eye(2000)
    assert apart.min() > 0.1
