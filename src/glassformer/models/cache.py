"""What a whole model remembers between steps: a cache per layer, and the context's keys."""

from collections.abc import Callable

from jaxtyping import Int
from torch import Tensor

from glassformer.functional.cache import CrossCache, GrowingCache, StaticCache


class ModelCache:
    """The caches of all layers, handled as one."""

    def __init__(self, n_layers: int, make: Callable[[], GrowingCache | StaticCache]) -> None:
        self.layers = [make() for _ in range(n_layers)]
        self.cross = [CrossCache() for _ in range(n_layers)]
        self.next_tokens: Tensor | None = None  # (B,): chosen to follow, not read yet

    @property
    def length(self) -> int | Int[Tensor, ""]:
        """How many tokens are kept: where the next one will stand."""
        return self.layers[0].length

    def crop(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        for layer in self.layers:
            layer.crop(length)

    def reorder(self, indices: Int[Tensor, " B"]) -> None:
        """Row i becomes what row indices[i] was (beams)."""
        for cache in (*self.layers, *self.cross):
            cache.reorder(indices)

    def reset(self) -> None:
        """Forget everything."""
        for cache in (*self.layers, *self.cross):
            cache.reset()
