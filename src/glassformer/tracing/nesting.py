"""Tensors in the arguments and results of a call, however they are nested."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor


def iterate_tensors(values: Any) -> Iterator[Tensor]:
    """Every tensor in nested tuples and lists, in order.

    >>> import torch
    >>> [t.shape[0] for t in iterate_tensors((torch.zeros(2), [1, torch.zeros(3)], "a"))]
    [2, 3]
    """
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, tuple | list):
        for value in values:
            yield from iterate_tensors(value)
