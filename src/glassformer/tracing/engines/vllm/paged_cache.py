"""Keys and values read back from an engine's paged cache.

A request whose prompt begins like an earlier one never computes that beginning again: its keys and
values are in pages of the cache. Kernels lay a page out as suits them, and differently on every
processor. So a page of our own is written first, by the engine's own function, with the number of
each element; where each number lands is where that element lies in all pages.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import TraceError

_DIGIT = 128  # whole numbers up to this are exact in every dtype, bfloat16 included


class PagedCache:
    """Reads the pages of one layer."""

    def __init__(self, layer: Any, kv_cache: Tensor, key: Float[Tensor, "T K D"]) -> None:
        self.n_heads, self.width = key.shape[1:]
        if kv_cache.dtype != key.dtype:
            raise TraceError(
                f"Its cache holds {kv_cache.dtype}, its keys are {key.dtype}: what attention reads "
                "from the cache is not what was written."
            )
        self.page_size = kv_cache[0].numel() // (2 * self.n_heads * self.width)
        self.places = self._find_places(layer, kv_cache)

    def _find_places(self, layer: Any, kv_cache: Tensor) -> Int[Tensor, " N"]:
        """Where in a page each element of k, and then of v, lies."""
        page = kv_cache.new_zeros(1, *kv_cache.shape[1:])
        numbers = torch.arange(page.numel(), device=page.device)
        slots = torch.arange(self.page_size, device=page.device)
        found, factor = torch.zeros_like(numbers), 1
        while factor < page.numel():
            digits = (numbers // factor % _DIGIT).to(page.dtype)
            k, v = digits.view(2, self.page_size, self.n_heads, self.width).unbind(0)
            layer.impl.do_kv_cache_update(layer, k.contiguous(), v.contiguous(), page, slots)
            found += page.flatten().long() * factor
            factor *= _DIGIT
        order = found.argsort()
        if not torch.equal(found[order], numbers):
            raise TraceError("How its cache lays out keys and values could not be found out.")
        return order

    def read(
        self, kv_cache: Tensor, pages: Int[Tensor, " P"], length: int
    ) -> tuple[Float[Tensor, "S K D"], Float[Tensor, "S K D"]]:
        """The first keys and values of the request that has these pages."""
        pages = pages[: -(-length // self.page_size)].long()
        found = kv_cache[pages].flatten(1)[:, self.places]  # (P, 2 · size · K · D)
        found = found.masked_fill((pages == 0)[:, None], 0.0)  # given up: outside of all windows
        both = found.view(len(pages), 2, self.page_size, self.n_heads, self.width)
        k, v = both.transpose(0, 1).flatten(1, 2)[:, :length].unbind(0)
        return k, v
