"""Key-value caches for generation: k is (B, K, S, D), v is (B, K, S, E).

`GrowingCache` concatenates, `StaticCache` writes into buffers of fixed shape so that a compiled
step never recompiles, `CrossCache` stores a context that is projected only once.

Two numbers locate a step in both caches of self-attention::

    slots      0 1 2 3 4 5 6 7 · · ·       the last append wrote slots 5, 6 and 7
                         │     └ length    where the next append will start
                         └ offset          where the last append started

The new queries have the positions of those slots: query i may attend to key j if j ≤ i + start. A
mask built before `append` starts at `length`, one built after it at `offset`: the same number.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, DtypeError, ShapeError

Pair = tuple[Float[Tensor, "B K S D"], Float[Tensor, "B K S E"]]


class GrowingCache:
    """A cache that grows by concatenation: any dtype, any length, with gradients.

    >>> cache = GrowingCache()
    >>> k, v = cache.append(torch.zeros(2, 1, 5, 8), torch.zeros(2, 1, 5, 8))
    >>> k, v = cache.append(torch.zeros(2, 1, 1, 8), torch.zeros(2, 1, 1, 8))
    >>> k.shape, cache.length, cache.offset
    (torch.Size([2, 1, 6, 8]), 6, 5)
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.k: Float[Tensor, "B K S D"] | None = None
        self.v: Float[Tensor, "B K S E"] | None = None
        self.offset: int = 0

    @property
    def length(self) -> int:
        """The number of stored keys, and the slot of the next append."""
        return 0 if self.k is None else self.k.shape[2]

    def append(self, k: Float[Tensor, "B K L D"], v: Float[Tensor, "B K L E"]) -> Pair:
        """Append keys and values; returns all of them."""
        _check_pair(k, v)
        offset = self.length
        if self.k is not None and self.v is not None:
            _check_joins("k", k, self.k)
            _check_joins("v", v, self.v)
            k, v = torch.cat((self.k, k), dim=2), torch.cat((self.v, v), dim=2)
        self.k, self.v, self.offset = k, v, offset
        return k, v

    def crop(self, length: int) -> None:
        """Keep only the first `length` keys."""
        _check_crop(length, self.length)
        self.offset = min(self.offset, length)
        if self.k is not None and self.v is not None:
            self.k, self.v = self.k[:, :, :length], self.v[:, :, :length]

    def reorder(self, indices: Int[Tensor, " B"]) -> None:
        """Row i becomes what row indices[i] was; rows may be repeated and left out (beams)."""
        if self.k is not None and self.v is not None:
            self.k, self.v = self.k[indices], self.v[indices]


class StaticCache:
    """A cache of fixed buffers, written in place; `append` returns the buffers, `max_len` long.

    Slots from `length` on are zero and hidden by the causal mask: query i may attend to key j if
    j ≤ i + offset. No Python number changes from step to step, so a step is compiled only once. Use
    it under `torch.no_grad()`: autograd cannot differentiate through overwritten buffers.

    >>> cache = StaticCache(2, 1, 7, 8)
    >>> k, v = cache.append(torch.ones(2, 1, 5, 8), torch.ones(2, 1, 5, 8))
    >>> k.shape, cache.length, cache.offset
    (torch.Size([2, 1, 7, 8]), tensor(5), tensor(0))
    """

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        max_len: int,
        head_dim: int,
        value_dim: int | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        value_dim = head_dim if value_dim is None else value_dim
        if min(batch, n_kv_heads, max_len, head_dim, value_dim) < 1:
            raise ConfigError(
                f"Every size of a cache must be at least 1; got batch={batch}, n_kv_heads="
                f"{n_kv_heads}, max_len={max_len}, head_dim={head_dim}, value_dim={value_dim}."
            )
        self.k = torch.zeros(batch, n_kv_heads, max_len, head_dim, dtype=dtype, device=device)
        self.v = torch.zeros(batch, n_kv_heads, max_len, value_dim, dtype=dtype, device=device)
        self._length = torch.zeros((), dtype=torch.int64, device=device)
        # The size of the last append rather than its start: the start would be a copy of `length`
        # from before it changes in place, and inductor swaps the two (torch 2.11, 2.13).
        self._newest = torch.zeros((), dtype=torch.int64, device=device)
        if self.k.is_cuda and not torch.compiler.is_compiling():
            # A CUDA graph may only write to memory at a fixed address.
            for state in (self.k, self.v, self._length, self._newest):
                torch._dynamo.mark_static_address(state, guard=False)

    @property
    def max_len(self) -> int:
        """The capacity in keys."""
        return self.k.shape[2]

    # New tensors, because the state changes in place: a mask or a table of positions built before
    # `append` must not change with it.
    @property
    def length(self) -> Int[Tensor, ""]:
        """The current number of stored keys, and the slot of the next append."""
        return self._length.clone()

    @property
    def offset(self) -> Int[Tensor, ""]:
        """The first slot of the last append (0 before the first)."""
        return self._length - self._newest

    def append(self, k: Float[Tensor, "B K L D"], v: Float[Tensor, "B K L E"]) -> Pair:
        """Write keys and values after the stored ones; returns the buffers, not copies."""
        _check_pair(k, v)
        _check_joins("k", k, self.k)
        _check_joins("v", v, self.v)
        n = k.shape[2]
        # Reading `length` synchronizes with the device, and compiled code cannot branch on it: the
        # generation loop checks the capacity once, beforehand.
        if not torch.compiler.is_compiling() and (length := int(self._length)) + n > self.max_len:
            raise ShapeError(
                f"The cache is full: max_len={self.max_len}, length={length}, {n} more were "
                "appended. Use a larger max_len, or crop it."
            )
        slots = self._length + torch.arange(n, device=self.k.device)
        self.k.index_copy_(2, slots, k)
        self.v.index_copy_(2, slots, v)
        self._newest.fill_(n)
        self._length.add_(n)
        return self.k, self.v

    def crop(self, length: int) -> None:
        """Forget all but the first `length`."""
        _check_crop(length, int(self._length))
        # Zero the rest: a hidden slot has weight 0, but 0 · inf would still be NaN.
        self.k[:, :, length:] = 0
        self.v[:, :, length:] = 0
        self._newest.sub_(self._length - length).clamp_(min=0)
        self._length.fill_(length)

    def reorder(self, indices: Int[Tensor, " B"]) -> None:
        """Replace row i by row indices[i], in place; the number of rows stays the same."""
        if indices.shape != self.k.shape[:1]:
            raise ShapeError(
                f"A static cache of {self.k.shape[0]} rows needs as many indices to reorder it; "
                f"got indices of shape {tuple(indices.shape)}."
            )
        self.k.copy_(self.k[indices])
        self.v.copy_(self.v[indices])

    def reset(self) -> None:
        """Clear the cache; the buffers keep their addresses."""
        for state in (self.k, self.v, self._length, self._newest):
            state.zero_()


class CrossCache:
    """The keys and values of cross-attention: the context is projected only once.

    >>> cache, k, v = CrossCache(), torch.randn(2, 1, 5, 8), torch.randn(2, 1, 5, 8)
    >>> first = cache.keep(lambda: (k, v))
    >>> again = cache.keep(lambda: 1 / 0)  # not called
    >>> again[0] is k, cache.length
    (True, 5)
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Clear the cache; the next `keep` projects a new context."""
        self.k: Float[Tensor, "B K S D"] | None = None
        self.v: Float[Tensor, "B K S E"] | None = None

    @property
    def length(self) -> int:
        """The length of the stored context; 0 before the first `keep`."""
        return 0 if self.k is None else self.k.shape[2]

    def keep(self, make: Callable[[], Pair]) -> Pair:
        """The stored result of `make`, which is called only the first time."""
        if self.k is None or self.v is None:
            k, v = make()
            _check_pair(k, v)
            self.k, self.v = k, v
        return self.k, self.v

    def reorder(self, indices: Int[Tensor, " B"]) -> None:
        """Row i becomes what row indices[i] was; rows may be repeated and left out (beams)."""
        if self.k is not None and self.v is not None:
            self.k, self.v = self.k[indices], self.v[indices]


Cache = GrowingCache | StaticCache


def _check_pair(k: Tensor, v: Tensor) -> None:
    if k.ndim != 4 or v.ndim != 4 or k.shape[:3] != v.shape[:3]:
        raise ShapeError(
            "k must be (B, K, S, D) and v (B, K, S, E), equal in all but their widths; "
            f"got k {tuple(k.shape)} and v {tuple(v.shape)}."
        )
    if k.dtype != v.dtype or k.device != v.device:
        raise DtypeError(
            "k and v must have the same dtype and device; "
            f"got k {k.dtype} on {k.device} and v {v.dtype} on {v.device}."
        )


def _check_joins(name: str, new: Tensor, kept: Tensor) -> None:
    if new.shape[:2] != kept.shape[:2] or new.shape[3] != kept.shape[3]:
        raise ShapeError(
            f"{name} must match the cache in all dimensions but the length; "
            f"the cache holds {name} {tuple(kept.shape)}, got {tuple(new.shape)}."
        )
    if new.dtype != kept.dtype or new.device != kept.device:
        raise DtypeError(
            f"{name} must have the dtype and device of the cache; "
            f"the cache holds {kept.dtype} on {kept.device}, got {new.dtype} on {new.device}."
        )


def _check_crop(length: int, kept: int) -> None:
    if not 0 <= length <= kept:
        raise ShapeError(f"A cache can be cropped to 0 … {kept}, its length; got length={length}.")
