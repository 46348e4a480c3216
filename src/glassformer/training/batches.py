"""Which examples form a batch, and the order of the batches.

    examples ─ shuffled by (seed, epoch) ─ pools ─ sorted by length ─ cut by tokens ─ shuffled

Examples of similar length need little padding. Batches hold about the same number of tokens, not
of texts. The order depends only on (seed, epoch), so a position in the data is two numbers. It does
not depend on the number of processes: each takes its rows of the same batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.layers.embedding import check_tokens
from glassformer.training.loss import IGNORED

Rows = np.ndarray  # indices of examples, or start positions in a long text
_ORDER, _CONTENT = 1, 2  # two independent random streams from one seed


@dataclass
class Batch:
    """Tensors of B rows each, and the number of targets over all processes."""

    tensors: dict[str, Tensor]
    n_targets: int
    n_tokens: int  # without padding; for the display

    def shard(self, rank: int, world_size: int) -> "Batch":
        """Every world_size-th row; a process without any gets one row whose targets are ignored."""
        if world_size == 1:
            return self
        mine = {name: tensor[rank::world_size] for name, tensor in self.tensors.items()}
        if len(mine["targets"]) == 0:
            mine = {name: tensor[:1].clone() for name, tensor in self.tensors.items()}
            mine["targets"].fill_(IGNORED)
        return Batch(mine, self.n_targets, self.n_tokens)

    def check_tokens(self, vocab_size: int) -> None:
        """Check token ids while they are in the host's memory."""
        for name in ("tokens", "source"):
            if name in self.tensors:
                check_tokens(self.tensors[name], vocab_size)

    def to(self, device: torch.device) -> "Batch":
        """Copy to another device; asynchronous if the memory is pinned."""
        moved = {n: t.to(device, non_blocking=True) for n, t in self.tensors.items()}
        return Batch(moved, self.n_targets, self.n_tokens)

    def pin(self) -> "Batch":
        """Pin the memory, so that copies to a GPU are asynchronous."""
        pinned = {name: tensor.pin_memory() for name, tensor in self.tensors.items()}
        return Batch(pinned, self.n_targets, self.n_tokens)


class Ragged:
    """Sequences of different lengths, concatenated in one array.

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
        """These sequences padded to a (B, L) array, L a multiple of round_to, and their lengths."""
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
    """Batches of at most max_tokens padded tokens (rows × longest row).

    `lengths` is (N,), or (N, 2) for pairs, whose longer side counts. Without a seed, nothing is
    shuffled and the order is by length. Sorting is done within pools of `pool` examples (default:
    all of them).

    >>> [rows.tolist() for rows in batch_by_tokens(np.array([3, 1, 2, 1, 6]), max_tokens=6)]
    [[1, 3, 2], [0], [4]]
    """
    sides = lengths.reshape(len(lengths), -1)
    longest = sides.max(axis=1)
    check_lengths(longest, max_tokens)
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
    for i, length in enumerate(longest):  # ascending: each is the longest so far
        n = i - first + 1
        if n > 1 and (n * length > max_tokens or (max_rows is not None and n > max_rows)):
            cuts.append(i)
            first = i
    return [rows for rows in np.split(order, cuts) if len(rows)]


def fill_batches(
    lengths: np.ndarray, *, room: Sequence[int], max_rows: int, seed: int, epoch: int = 0
) -> list[Rows]:
    """Batches of random examples: at most max_rows, whose lengths (N, sides) add up to the room.

    >>> lengths = np.array([[3], [1], [2], [1], [6], [2]])
    >>> [rows.tolist() for rows in fill_batches(lengths, room=(6,), max_rows=9, seed=0)]
    [[1], [4], [5, 3, 2], [0]]
    """
    order = np.random.default_rng([seed, epoch, _ORDER]).permutation(len(lengths))
    totals = lengths[order].cumsum(axis=0, dtype=np.int64)
    most, before = np.array(room), np.zeros(len(room), dtype=np.int64)
    cuts = [0]
    while cuts[-1] < len(order):
        ends = [
            int(np.searchsorted(side, limit, "right"))
            for side, limit in zip(totals.T, before + most, strict=True)
        ]
        first = cuts[-1]
        cuts.append(min(max(min(ends), first + 1), first + max_rows))
        before = totals[cuts[-1] - 1]
    return np.split(order, cuts[1:-1]) if len(order) else []


def check_lengths(longest: np.ndarray, max_tokens: int) -> None:
    """Check that each example fits a batch."""
    if len(longest) and longest.max() > max_tokens:
        worst = int(longest.argmax())
        raise ConfigError(
            f"An example must fit a batch of max_tokens={max_tokens}; example {worst} has "
            f"{int(longest[worst])} tokens. Raise batches.max_tokens, or lower batches.max_len."
        )


def window_batches(
    n_tokens: int, *, length: int, rows: int, seed: int, epoch: int, at_random: bool = False
) -> list[Rows]:
    """Start positions of windows in a long text, in batches of `rows`.

    Windows are contiguous, start at a new offset each epoch, and are shuffled. With `at_random`
    they start anywhere, as in nanoGPT, and an epoch has as many windows as fit the text. Every
    window is followed by at least one token, the target of its last position.

    >>> [starts.tolist() for starts in window_batches(21, length=5, rows=2, seed=0, epoch=0)]
    [[4, 9], [14]]
    """
    room = n_tokens - length  # windows start before this: the last token needs a target
    if room < 1:
        raise ConfigError(
            f"A text must be longer than a window of {length} tokens; it has {n_tokens}. "
            "Lower batches.length, or use a longer text."
        )
    rng = np.random.default_rng([seed, epoch, _ORDER])
    if at_random:
        n_batches = max(1, n_tokens // (length * rows))
        return list(rng.integers(0, room, (n_batches, rows)))
    starts = np.arange(rng.integers(0, min(length, room)), room, length)
    starts = rng.permutation(starts)
    return [starts[i : i + rows] for i in range(0, len(starts), rows)]


def padding_share(lengths: np.ndarray, batches: Sequence[Rows]) -> float:
    """The share of padding in all batches together.

    >>> padding_share(np.array([4, 2, 2]), [np.array([0, 1, 2])])
    0.33333333333333337
    """
    sides = lengths.reshape(len(lengths), -1)
    real = sum(int(sides[rows].sum()) for rows in batches)
    padded = sum(int(sides[rows].max(axis=0).sum()) * len(rows) for rows in batches)
    return 1 - real / max(1, padded)


def content_rng(seed: int, *where: int) -> np.random.Generator:
    """The random generator for the contents of a batch, such as which tokens are masked."""
    return np.random.default_rng([seed, _CONTENT, *where])


def as_tensors(**arrays: Any) -> dict[str, Tensor]:
    """Convert arrays to integer tensors."""
    return {n: torch.from_numpy(np.ascontiguousarray(a, dtype=np.int64)) for n, a in arrays.items()}
