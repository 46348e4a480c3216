"""Windows of a long text: fixed length, no padding, and the document of each token."""

from collections.abc import Iterator

import numpy as np

from glassformer.text.store import TokenStore
from glassformer.training.batches import Rows, window_batches
from glassformer.training.recipe import BatchSettings, DataSettings


class Windows:
    """A long text, cut into new windows each epoch; its end can be held out for validation."""

    def __init__(self, store: TokenStore, batches: BatchSettings, seed: int) -> None:
        self.tokens, self.offsets = store.tokens, store.offsets
        self.batches, self.seed = batches, seed
        self.n = len(self.tokens)

    @classmethod
    def split(
        cls,
        train: TokenStore,
        valid: TokenStore | None,
        data: DataSettings,
        batches: BatchSettings,
        seed: int,
    ) -> "tuple[Windows, Windows | None]":
        """The training part and the validation part."""
        first = cls(train, batches, seed)
        if valid is not None:
            return first, cls(valid, batches, seed)
        if not data.valid_share:
            return first, None
        cut = int(first.n * (1 - data.valid_share))
        second = cls(TokenStore(first.tokens[cut:], first.offsets - cut), batches, seed)
        first.tokens, first.n = first.tokens[:cut], cut
        return first, second

    def order(self, epoch: int) -> list[Rows]:
        """The start positions of the windows of an epoch, batch by batch."""
        b = self.batches
        return window_batches(
            self.n, length=b.length, rows=b.rows, seed=self.seed, epoch=epoch, at_random=b.at_random
        )

    def fixed_batches(self, n_batches: int | None) -> Iterator[Rows]:
        """The same windows each time: all of them, or `n_batches` random batches."""
        b = self.batches
        length = min(b.length, self.n - 1)
        if n_batches is not None:
            rng = np.random.default_rng(self.seed)
            for _ in range(n_batches):
                yield rng.integers(0, self.n - length, b.rows)
            return
        starts = np.arange(0, self.n - length, length)
        for i in range(0, len(starts), b.rows):
            yield starts[i : i + b.rows]

    def cut(self, starts: Rows, extra: int = 0) -> np.ndarray:
        """The tokens of windows, each followed by `extra` more."""
        length = min(self.batches.length, self.n - 1)
        return self.tokens[starts[:, None] + np.arange(length + extra)].astype(np.int64)

    def documents(self, starts: Rows, extra: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The document of each token, and its position in it, counted within the window."""
        length = min(self.batches.length, self.n - 1)
        where = starts[:, None] + np.arange(length + extra)
        which = np.searchsorted(self.offsets, where, side="right")
        begins = np.maximum(self.offsets[which - 1], starts[:, None])
        return which, where - begins
