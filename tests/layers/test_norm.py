import pytest
import torch

from closeness import assert_close, assert_same
from glassformer.errors import ConfigError
from glassformer.layers import RMSNorm, norm_maker


def test_rms_norm_is_its_formula() -> None:
    x = torch.randn(2, 3, 7, dtype=torch.float64)
    norm = RMSNorm(7, eps=1e-3).double()
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
    expected = x / (x.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt() * norm.weight
    assert_close(norm(x), expected, 1e-14)


def test_rms_norm_is_torchs() -> None:
    x = torch.randn(5, 11)
    theirs = torch.nn.RMSNorm(11, eps=1e-6)
    assert_close(RMSNorm(11)(x), theirs(x), 1e-6)


def test_low_precision_takes_its_mean_in_float32() -> None:
    """The mean of 4,096 squares of 300 overflows float16, and must not."""
    x = torch.full((1, 4096), 300.0, dtype=torch.float16)
    assert_same(RMSNorm(4096).half()(x), torch.ones(1, 4096).half())


def test_makers() -> None:
    assert isinstance(norm_maker("rms", 5, eps=1e-5)(), RMSNorm)
    layer = norm_maker("layer", 5, eps=1e-3, bias=False)()
    assert isinstance(layer, torch.nn.LayerNorm)
    assert layer.eps == 1e-3 and layer.bias is None
    make = norm_maker("layer", 5, eps=1e-3)
    assert make() is not make()


@pytest.mark.plain
def test_refusal() -> None:
    with pytest.raises(ConfigError, match="'layer' or 'rms'; got 'batch'"):
        norm_maker("batch", 5, eps=1e-5)
