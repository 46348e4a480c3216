"""Keys and values kept between the steps of generation: k is (B, K, S, D), v is (B, K, S, E).

Three ways to keep them: `GrowingCache` concatenates, `StaticCache` writes into buffers of one shape
so that a compiled step never recompiles, `CrossCache` keeps a context that is computed only once.

Two numbers place a step, in both caches that grow::

    slots      0 1 2 3 4 5 6 7 · · ·       the last append wrote slots 5, 6 and 7
                         │     └ length    where the next append will start
                         └ offset          where the last append started

Queries that come with the keys stand at those slots, and query i may attend to key j where
j ≤ i + start. So whoever draws the mask before `append` starts it at `length`, and whoever draws it
after `append` starts it at `offset`: the same number.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, DtypeError, ShapeError

Pair = tuple[Float[Tensor, "B K S D"], Float[Tensor, "B K S E"]]


class GrowingCache:
    """A cache that grows by concatenation: any dtype, any length, gradients as without a cache.

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
        """How many keys are kept; the slot where the next append will start."""
        return 0 if self.k is None else self.k.shape[2]

    def append(self, k: Float[Tensor, "B K L D"], v: Float[Tensor, "B K L E"]) -> Pair:
        """Keep these too; gives all that is kept."""
        _check_pair(k, v)
        offset = self.length
        if self.k is not None and self.v is not None:
            _check_joins("k", k, self.k)
            _check_joins("v", v, self.v)
            k, v = torch.cat((self.k, k), dim=2), torch.cat((self.v, v), dim=2)
        self.k, self.v, self.offset = k, v, offset
        return k, v

    def crop(self, length: int) -> None:
        """Forget all but the first `length`."""
        _check_crop(length, self.length)
        self.offset = min(self.offset, length)
        if self.k is not None and self.v is not None:
            self.k, self.v = self.k[:, :, :length], self.v[:, :, :length]

    def reorder(self, indices: Int[Tensor, " B"]) -> None:
        """Row i becomes what row indices[i] was; rows may be repeated and left out (beams)."""
        if self.k is not None and self.v is not None:
            self.k, self.v = self.k[indices], self.v[indices]


class StaticCache:
    """A cache of fixed buffers, written in place: `append` gives whole buffers, `max_len` long.

    Slots from `length` on hold zeros, and the causal mask hides them: key j is allowed for query i
    where j ≤ i + offset. Nothing that changes from step to step is a Python number, so a compiled
    step is compiled once. For use under `torch.no_grad()`: buffers that are written again cannot be
    differentiated through.

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
        # How many the last append brought, and not where it started: that would be a copy of
        # `length` from before it changes in place, and inductor swaps the two (torch 2.11, 2.13).
        self._newest = torch.zeros((), dtype=torch.int64, device=device)
        if self.k.is_cuda and not torch.compiler.is_compiling():
            # A CUDA graph may only change memory whose address it can rely on.
            for state in (self.k, self.v, self._length, self._newest):
                torch._dynamo.mark_static_address(state, guard=False)

    @property
    def max_len(self) -> int:
        """How many keys there is room for."""
        return self.k.shape[2]

    # New tensors, because the state is changed in place: a mask or a table of positions made before
    # `append` must still say afterwards what it said.
    @property
    def length(self) -> Int[Tensor, ""]:
        """How many keys are kept, as it is now; the slot where the next append will start."""
        return self._length.clone()

    @property
    def offset(self) -> Int[Tensor, ""]:
        """The slot where the last append started, as it is now (0 before the first)."""
        return self._length - self._newest

    def append(self, k: Float[Tensor, "B K L D"], v: Float[Tensor, "B K L E"]) -> Pair:
        """Write these behind what is kept; gives the whole buffers, not copies of them."""
        _check_pair(k, v)
        _check_joins("k", k, self.k)
        _check_joins("v", v, self.v)
        n = k.shape[2]
        # Reading `length` waits for the device, and compiled code cannot branch on it: there, the
        # loop that generates checks once, beforehand, that everything will fit.
        if not torch.compiler.is_compiling() and (length := int(self._length)) + n > self.max_len:
            raise ShapeError(
                f"The cache is full: max_len={self.max_len}, length={length}, and {n} more came. "
                "Make it longer, or crop it."
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
        # Zeros and not leftovers: a hidden slot has weight 0, but 0 · inf would still be NaN.
        self.k[:, :, length:] = 0
        self.v[:, :, length:] = 0
        self._newest.sub_(self._length - length).clamp_(min=0)
        self._length.fill_(length)

    def reorder(self, indices: Int[Tensor, " B"]) -> None:
        """Row i becomes what row indices[i] was, in place: as many rows as before."""
        if indices.shape != self.k.shape[:1]:
            raise ShapeError(
                f"A static cache of {self.k.shape[0]} rows is reordered by as many indices; "
                f"got indices of shape {tuple(indices.shape)}."
            )
        self.k.copy_(self.k[indices])
        self.v.copy_(self.v[indices])

    def reset(self) -> None:
        """Forget everything; the buffers stay where they are."""
        for state in (self.k, self.v, self._length, self._newest):
            state.zero_()


class CrossCache:
    """Cross-attention's keys and values: the context is projected at the first step only.

    >>> cache, k, v = CrossCache(), torch.randn(2, 1, 5, 8), torch.randn(2, 1, 5, 8)
    >>> first = cache.keep(lambda: (k, v))
    >>> again = cache.keep(lambda: 1 / 0)  # not called
    >>> again[0] is k, cache.length
    (True, 5)
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the context; the next `keep` makes it anew."""
        self.k: Float[Tensor, "B K S D"] | None = None
        self.v: Float[Tensor, "B K S E"] | None = None

    @property
    def length(self) -> int:
        """How long the kept context is; 0 before the first `keep`."""
        return 0 if self.k is None else self.k.shape[2]

    def keep(self, make: Callable[[], Pair]) -> Pair:
        """What `make` gave when it was called the first time."""
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
            "k must be (B, K, S, D) and v (B, K, S, E), alike in all but their widths; "
            f"got k {tuple(k.shape)} and v {tuple(v.shape)}."
        )
    if k.dtype != v.dtype or k.device != v.device:
        raise DtypeError(
            "k and v must have one dtype and one device; "
            f"got k {k.dtype} on {k.device} and v {v.dtype} on {v.device}."
        )


def _check_joins(name: str, new: Tensor, kept: Tensor) -> None:
    if new.shape[:2] != kept.shape[:2] or new.shape[3] != kept.shape[3]:
        raise ShapeError(
            f"{name} must fit the cache in all but its length; "
            f"the cache holds {name} {tuple(kept.shape)}, got {tuple(new.shape)}."
        )
    if new.dtype != kept.dtype or new.device != kept.device:
        raise DtypeError(
            f"{name} must have the dtype and device of the cache; "
            f"the cache holds {kept.dtype} on {kept.device}, got {new.dtype} on {new.device}."
        )


def _check_crop(length: int, kept: int) -> None:
    if not 0 <= length <= kept:
        raise ShapeError(
            f"A cache can be cropped to 0 … its length; its length is {kept}, got length={length}."
        )
