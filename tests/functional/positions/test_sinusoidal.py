import doctest
import importlib
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import ConfigError
from glassformer.functional.positions.sinusoidal import sinusoidal

untimed = settings(deadline=None)


def by_hand(position: float, dim: int, base: float = 10000.0) -> list[float]:
    row = []
    for i in range(dim // 2):
        angle = position / base ** (2 * i / dim)
        row += [math.sin(angle), math.cos(angle)]
    return row


def test_doctests():
    found = doctest.testmod(importlib.import_module("glassformer.functional.positions.sinusoidal"))
    assert found.attempted > 0
    assert found.failed == 0


def test_a_length_gives_the_formula():
    expected = torch.tensor([by_hand(p, 6) for p in range(7)], dtype=torch.float64)
    torch.testing.assert_close(sinusoidal(7, 6, dtype=torch.float64), expected, atol=1e-15, rtol=0)
    torch.testing.assert_close(sinusoidal(7, 6), expected.float(), atol=0, rtol=1e-7)


def test_a_length_of_zero_is_an_empty_table():
    assert sinusoidal(0, 6).shape == (0, 6)


@untimed
@given(st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=5), st.sampled_from([2, 6, 10, 14]))
def test_any_real_position(places, dim):
    expected = torch.tensor([by_hand(p, dim, 500.0) for p in places], dtype=torch.float64)
    table = sinusoidal(
        torch.tensor(places, dtype=torch.float64), dim, base=500, dtype=torch.float64
    )
    torch.testing.assert_close(table, expected, atol=1e-10, rtol=0)


def test_positions_of_any_shape():
    places = torch.tensor([[3, 1, 4], [1, 5, 9]], dtype=torch.int32)
    table = sinusoidal(places, 10)
    assert table.shape == (2, 3, 10)
    torch.testing.assert_close(table, sinusoidal(11, 10)[places.long()], atol=0, rtol=0)
    assert sinusoidal(torch.tensor(7), 10).shape == (10,)


def test_a_million_tokens_away_float32_is_exact_to_its_last_bit():
    places = [999_983, 1_000_000, 1_000_003]
    expected = torch.tensor([by_hand(p, 14) for p in places], dtype=torch.float64)
    error = (sinusoidal(torch.tensor(places), 14).double() - expected).abs()
    assert error.max() <= 2**-24


@untimed
@given(st.integers(0, 10_000), st.integers(-100, 100))
def test_the_product_of_two_rows_depends_on_their_distance_alone(place, distance):
    pair = sinusoidal(torch.tensor([place, place + distance]), 22, dtype=torch.float64)
    zero = sinusoidal(torch.tensor([0, distance]), 22, dtype=torch.float64)
    torch.testing.assert_close(pair[0] @ pair[1], zero[0] @ zero[1], atol=1e-9, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtype_is_the_last_step(dtype):
    assert sinusoidal(5, 6, dtype=dtype).dtype == dtype
    exact = sinusoidal(5, 6, dtype=torch.float64)
    assert torch.equal(sinusoidal(5, 6, dtype=dtype), exact.to(dtype))


def test_device_is_that_of_the_positions_unless_named():
    assert sinusoidal(torch.zeros(3, device="meta"), 4).device.type == "meta"
    assert sinusoidal(3, 4, device="meta").device.type == "meta"
    assert sinusoidal(torch.zeros(3), 4, device="meta").device.type == "meta"
    assert sinusoidal(3, 4).device.type == "cpu"


def test_gradients_reach_fractional_positions():
    places = torch.tensor([0.25, 2.5, 7.125], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p: sinusoidal(p, 6, dtype=torch.float64), places)


@pytest.mark.parametrize("dim", [0, 1, 7, -2])
def test_dim_must_be_even(dim):
    with pytest.raises(ConfigError, match=rf"even and at least 2.*dim={dim}\."):
        sinusoidal(3, dim)


@pytest.mark.parametrize("base", [1, 0.5, -3.0])
def test_base_must_exceed_one(base):
    with pytest.raises(ConfigError, match=rf"greater than 1.*base={base}\."):
        sinusoidal(3, 4, base=base)


def test_a_length_must_not_be_negative():
    with pytest.raises(ConfigError, match=r"at least 0; got positions=-5\."):
        sinusoidal(-5, 4)


@pytest.mark.plain
def test_compiles_whole():
    compiled = torch.compile(sinusoidal, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(7, 6), sinusoidal(7, 6), atol=0, rtol=0)
    places = torch.tensor([[3.5, 1.0], [1e6, 5.0]])
    torch.testing.assert_close(compiled(places, 10), sinusoidal(places, 10), atol=0, rtol=0)
