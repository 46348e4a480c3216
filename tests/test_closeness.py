import pytest
import torch

from closeness import assert_close, assert_same, assert_zero


def test_close_fails_on_one_element() -> None:
    x = torch.zeros(3, 5)
    y = x.clone()
    y[2, 4] = 0.2
    assert_close(x, y, 0.3)
    with pytest.raises(AssertionError, match="differs by 0"):
        assert_close(x, y, 0.1)


@pytest.mark.parametrize(
    "bad", [torch.tensor([torch.nan]), torch.zeros(2), torch.tensor([torch.inf])]
)
def test_close_fails_on_nan_shape_and_infinity(bad: torch.Tensor) -> None:
    with pytest.raises(AssertionError):
        assert_close(bad, torch.zeros(1), 1.0)


def test_same_and_zero_fail() -> None:
    with pytest.raises(AssertionError):
        assert_same(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]))
    with pytest.raises(AssertionError):
        assert_zero(torch.tensor([0.0, 1e-30]))
    with pytest.raises(AssertionError):
        assert_zero(torch.empty(0))
