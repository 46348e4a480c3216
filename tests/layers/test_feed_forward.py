import pytest
import torch
import torch.nn.functional as F

from closeness import assert_close
from glassformer.errors import ConfigError
from glassformer.layers import FeedForward

FORMULAS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)),
    "gelu_tanh": lambda x: (
        x * 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))
    ),
    "silu": lambda x: x / (1 + torch.exp(-x)),
}


@pytest.mark.parametrize("activation", FORMULAS)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_is_its_formula(activation: str, gated: bool, bias: bool) -> None:
    layer = FeedForward(5, 7, activation=activation, gated=gated, bias=bias).double()
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    act, hidden = FORMULAS[activation], layer.up(x)
    hidden = act(hidden[..., :7]) * hidden[..., 7:] if gated else act(hidden)
    assert_close(layer(x), layer.down(hidden), 1e-12)
    assert (layer.up.bias is not None) == bias == (layer.down.bias is not None)
    assert layer.up.weight.shape == ((14 if gated else 7), 5)


def test_each_position_is_by_itself() -> None:
    layer = FeedForward(5, 7)
    x = torch.randn(2, 3, 5)
    assert_close(layer(x)[:, 1], layer(x[:, 1]), 1e-6)


def test_dropout_only_while_training() -> None:
    layer = FeedForward(5, 64, dropout=0.5)
    x = torch.randn(2, 3, 5)
    expected = layer.down(F.relu(layer.up(x)))
    assert not torch.allclose(layer(x), expected)
    assert_close(layer.eval()(x), expected, 0.0)


@pytest.mark.plain
def test_refusal() -> None:
    with pytest.raises(ConfigError, match=r"relu, gelu, gelu_tanh, silu; got 'swish'"):
        FeedForward(5, 7, activation="swish")
