"""Which examples stand together in a batch, and in which order batches come.

    examples ─ shuffled by (seed, epoch) ─ pools ─ sorted by length ─ cut by tokens ─ shuffled

Neighbours in length need little padding; batches hold about the same number of tokens, not of
texts. The order is a function of (seed, epoch), so that a place in the data is two numbers, and
it knows nothing of processes: each of them takes rows of the same batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.training.loss import IGNORED

Rows = np.ndarray  # which examples, or which places of a long text
_ORDER, _CONTENT = 1, 2  # different streams of random numbers from one seed


@dataclass
class Batch:
    """Tensors of B rows each, and how many targets they hold in all processes together."""

    tensors: dict[str, Tensor]
    n_targets: int
    n_tokens: int  # without padding, for the display

    def shard(self, rank: int, world_size: int) -> "Batch":
        """Every world_size-th row; a process left without one takes a row with no targets."""
        if world_size == 1:
            return self
        mine = {name: tensor[rank::world_size] for name, tensor in self.tensors.items()}
        if len(mine["targets"]) == 0:
            mine = {name: tensor[:1].clone() for name, tensor in self.tensors.items()}
            mine["targets"].fill_(IGNORED)
        return Batch(mine, self.n_targets, self.n_tokens)

    def to(self, device: torch.device) -> "Batch":
        """On another device, without waiting where the memory is pinned."""
        moved = {n: t.to(device, non_blocking=True) for n, t in self.tensors.items()}
        return Batch(moved, self.n_targets, self.n_tokens)

    def pin(self) -> "Batch":
        """In memory that a GPU can read by itself."""
        pinned = {name: tensor.pin_memory() for name, tensor in self.tensors.items()}
        return Batch(pinned, self.n_targets, self.n_tokens)


class Ragged:
    """Sequences of unequal length behind each other in one array.

    >>> texts = Ragged.of([[1, 2, 3], [4]])
    >>> texts.pad_rows(np.array([1, 0]), pad=0)[0].tolist()
    [[4, 0, 0], [1, 2, 3]]
    """

    def __init__(self, flat: np.ndarray, lengths: np.ndarray) -> None:
        self.flat, self.lengths = flat, lengths
        self.starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Ragged":
        lengths = np.array([len(each) for each in sequences], dtype=np.int64)
        flat = np.fromiter((t for each in sequences for t in each), np.int32, int(lengths.sum()))
        return cls(flat, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> list[int]:
        return self.flat[self.starts[i] : self.starts[i] + self.lengths[i]].tolist()

    def pad_rows(self, rows: Rows, *, pad: int, round_to: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """These sequences as one (B, L) array, and their lengths; L is a multiple of round_to."""
        lengths = self.lengths[rows]
        longest = max(1, int(lengths.max(initial=0)))
        places = np.arange(-(-longest // round_to) * round_to)
        inside = places < lengths[:, None]
        where = np.where(inside, self.starts[rows][:, None] + places, 0)
        return np.where(inside, self.flat[where].astype(np.int64), pad), lengths


def batch_by_tokens(
    lengths: np.ndarray,
    *,
    max_tokens: int,
    seed: int | None = None,
    epoch: int = 0,
    pool: int | None = None,
    max_rows: int | None = None,
) -> list[Rows]:
    """Batches whose padded tokens, rows × longest, are at most max_tokens.

    `lengths` is (N,), or (N, 2) for pairs, of which the longer side counts. Without a seed nothing
    is shuffled: the order is by length. `pool` examples at a time are sorted, all unless given.

    >>> [rows.tolist() for rows in batch_by_tokens(np.array([3, 1, 2, 1, 6]), max_tokens=6)]
    [[1, 3, 2], [0], [4]]
    """
    sides = lengths.reshape(len(lengths), -1)
    longest = sides.max(axis=1)
    if len(sides) and longest.max() > max_tokens:
        worst = int(longest.argmax())
        raise ConfigError(
            f"An example must fit a batch of max_tokens={max_tokens}; example {worst} has "
            f"{int(longest[worst])} tokens. Raise batches.max_tokens, or lower batches.max_len."
        )
    rng = None if seed is None else np.random.default_rng([seed, epoch, _ORDER])
    order = np.arange(len(sides)) if rng is None else rng.permutation(len(sides))
    batches: list[Rows] = []
    pool = len(order) if pool is None else pool
    for start in range(0, len(order), max(1, pool)):
        some = order[start : start + pool]
        some = some[np.lexsort((sides[some, -1], sides[some, 0], longest[some]))]
        batches += _cut(some, longest[some].tolist(), max_tokens, max_rows)
    if rng is not None:
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return batches


def _cut(
    order: np.ndarray, longest: list[int], max_tokens: int, max_rows: int | None
) -> list[Rows]:
    cuts, first = [], 0
    for i, length in enumerate(longest):  # ascending: the last is the longest so far
        n = i - first + 1
        if n > 1 and (n * length > max_tokens or (max_rows is not None and n > max_rows)):
            cuts.append(i)
            first = i
    return [rows for rows in np.split(order, cuts) if len(rows)]


def window_batches(
    n_tokens: int, *, length: int, rows: int, seed: int, epoch: int, at_random: bool = False
) -> list[Rows]:
    """Where windows of a long text begin, in batches of `rows`; each window has a next token.

    One behind the other from a new place each epoch, then shuffled; or anywhere `at_random`, as
    nanoGPT does, where an epoch is as many windows as the text has room for.

    >>> [starts.tolist() for starts in window_batches(21, length=5, rows=2, seed=0, epoch=0)]
    [[4, 9], [14]]
    """
    room = n_tokens - length  # a window may begin before this: its last token needs a next one
    if room < 1:
        raise ConfigError(
            f"A text must be longer than a window of {length} tokens; it has {n_tokens}. "
            "Lower batches.length, or take a longer text."
        )
    rng = np.random.default_rng([seed, epoch, _ORDER])
    if at_random:
        n_batches = max(1, n_tokens // (length * rows))
        return list(rng.integers(0, room, (n_batches, rows)))
    starts = np.arange(rng.integers(0, min(length, room)), room, length)
    starts = rng.permutation(starts)
    return [starts[i : i + rows] for i in range(0, len(starts), rows)]


def padding_share(lengths: np.ndarray, batches: Sequence[Rows]) -> float:
    """How much of all padded batches is padding.

    >>> padding_share(np.array([4, 2, 2]), [np.array([0, 1, 2])])
    0.33333333333333337
    """
    sides = lengths.reshape(len(lengths), -1)
    real = sum(int(sides[rows].sum()) for rows in batches)
    padded = sum(int(sides[rows].max(axis=0).sum()) * len(rows) for rows in batches)
    return 1 - real / max(1, padded)


def content_rng(seed: int, *where: int) -> np.random.Generator:
    """Random numbers for what is inside a batch, such as which tokens are masked."""
    return np.random.default_rng([seed, _CONTENT, *where])


def as_tensors(**arrays: Any) -> dict[str, Tensor]:
    """Arrays as tensors of whole numbers."""
    return {n: torch.from_numpy(np.ascontiguousarray(a, dtype=np.int64)) for n, a in arrays.items()}
