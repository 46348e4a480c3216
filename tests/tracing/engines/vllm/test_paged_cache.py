"""A paged cache is read back in whatever layout its engine writes it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from closeness import assert_same
from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.paged_cache import PagedCache

PAGES, SIZE, K, D = 7, 4, 3, 5


def layer_that(place: Callable[[Tensor, Tensor], Tensor]) -> Any:
    """A layer whose cache holds for every page what `place` makes of its keys and values."""

    def update(_layer: Any, key: Tensor, value: Tensor, cache: Tensor, slots: Tensor) -> None:
        for k, v, slot in zip(key, value, slots.tolist(), strict=True):
            cache[slot // SIZE, ..., slot % SIZE, :] = place(k, v)

    return SimpleNamespace(impl=SimpleNamespace(do_kv_cache_update=update))


def reversed_pairs(k: Tensor, v: Tensor) -> Tensor:
    """(K, 2 · D): values first, and keys from the last element to the first."""
    return torch.cat([v, k.flip(-1)], dim=-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pages_are_read_in_any_layout(dtype: torch.dtype) -> None:
    layer = layer_that(reversed_pairs)
    cache = torch.full((PAGES, K, SIZE, 2 * D), torch.nan, dtype=dtype)
    k, v = torch.randn(2, 10, K, D).to(dtype).unbind(0)
    pages = torch.tensor([5, 2, 6, 0], dtype=torch.int32)
    slots = torch.tensor([int(pages[i // SIZE]) * SIZE + i % SIZE for i in range(10)])
    layer.impl.do_kv_cache_update(layer, k, v, cache, slots)
    read = PagedCache(layer, cache, k).read(cache, pages, 10)
    assert_same(read[0], k)
    assert_same(read[1], v)


def test_page_given_up_reads_as_zeros() -> None:
    layer = layer_that(reversed_pairs)
    cache = torch.full((PAGES, K, SIZE, 2 * D), torch.nan)
    cache[3] = 1.0
    k, _ = PagedCache(layer, cache, torch.zeros(1, K, D)).read(cache, torch.tensor([0, 3]), 6)
    assert_same(k[:4], torch.zeros(4, K, D))
    assert_same(k[4:], torch.ones(2, K, D))


def test_layout_that_loses_elements_is_refused() -> None:
    layer = layer_that(lambda k, _v: torch.cat([k, k], dim=-1))
    with pytest.raises(TraceError, match="How its cache lays out keys and values could not"):
        PagedCache(layer, torch.zeros(PAGES, K, SIZE, 2 * D), torch.zeros(1, K, D))


def test_quantised_cache_is_refused() -> None:
    cache = torch.zeros(PAGES, K, SIZE, 2 * D, dtype=torch.float16)
    with pytest.raises(TraceError, match=r"cache holds torch.float16, its keys are torch.float32"):
        PagedCache(layer_that(reversed_pairs), cache, torch.zeros(1, K, D))
