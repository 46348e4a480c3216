"""Windows of a long text: fixed length, no padding, and which document each token is of."""

from collections.abc import Iterator

import numpy as np

from glassformer.text.store import TokenStore
from glassformer.training.batches import Rows, window_batches
from glassformer.training.recipe import BatchSettings, DataSettings


class Windows:
    """A text of many tokens, cut anew each epoch; its end may be held out to validate with."""

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
        """What to train with, and what to validate with."""
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
        """Where the windows of an epoch begin, batch by batch."""
        b = self.batches
        return window_batches(
            self.n, length=b.length, rows=b.rows, seed=self.seed, epoch=epoch, at_random=b.at_random
        )

    def fixed_batches(self, n_batches: int | None) -> Iterator[Rows]:
        """The same windows each time: all of them, or so many batches from anywhere."""
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
        """The tokens of windows, and `extra` ones behind them."""
        length = min(self.batches.length, self.n - 1)
        return self.tokens[starts[:, None] + np.arange(length + extra)].astype(np.int64)

    def documents(self, starts: Rows, extra: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Which document each token of windows is of, and its place in it, from the window's."""
        length = min(self.batches.length, self.n - 1)
        where = starts[:, None] + np.arange(length + extra)
        which = np.searchsorted(self.offsets, where, side="right")
        begins = np.maximum(self.offsets[which - 1], starts[:, None])
        return which, where - begins
