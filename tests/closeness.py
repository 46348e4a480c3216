"""Assertions on whole tensors; test_closeness.py proves that they fail when they should."""

import torch
from torch import Tensor


def assert_close(got: Tensor, expected: Tensor, atol: float, what: str = "") -> None:
    """Same shape, no NaN on either side, and no element further away than atol."""
    assert got.shape == expected.shape, f"{what} shape {tuple(got.shape)} ≠ {tuple(expected.shape)}"
    assert not got.isnan().any(), f"{what} has NaN"
    assert not expected.isnan().any(), f"{what}: the expected values have NaN"
    same = got == expected  # takes care of infinities
    error = (got.double() - expected.double()).abs().masked_fill(same, 0.0)
    worst = error.max().item() if error.numel() else 0.0
    assert worst <= atol, f"{what} differs by {worst:.3g}, more than {atol:.3g}"


def assert_same(got: Tensor, expected: Tensor) -> None:
    """The same bits of the same shape."""
    assert got.shape == expected.shape
    assert torch.equal(got, expected)


def assert_zero(tensor: Tensor) -> None:
    """Nothing but exact zeros."""
    assert tensor.numel() > 0, "an empty tensor proves nothing"
    assert torch.equal(tensor, torch.zeros_like(tensor))
