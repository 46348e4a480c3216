"""Packed batches: sequences of unequal length in one row, without padding.

    q   ├─ a ─┤├─ b ─┤├──── c ────┤     query_starts = [0, 7, 14, 27]
    k   ├─── a ───┤├─ b ─┤├──── c ──── … side by side as well, or in the blocks of a paged cache:
        row i of block_table lists the blocks that hold the keys of sequence i, in order

Each sequence is measured as if it were alone: its masks, positions and distances begin at its own
first key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import DtypeError, ShapeError

Starts = Int[Tensor, " _"] | Sequence[int]


@dataclass(frozen=True)
class Packed:
    """Where the sequences of a packed batch begin, and which blocks of a cache hold their keys.

    `query_starts` and `key_starts` are cumulative lengths, from 0 to the number of all queries and
    all keys; without `key_starts` there are as many keys as queries. With a `block_table`, k is
    the cache, (n_blocks, K, block_size, D), and `n_keys`, the last of `key_starts`, saves a look
    into the memory of a GPU.

    >>> Packed([0, 3, 5]).n_sequences
    2
    """

    query_starts: Starts
    key_starts: Starts | None = None
    block_table: Int[Tensor, "N pages"] | None = None
    n_keys: int | None = None

    @property
    def n_sequences(self) -> int:
        return len(self.query_starts) - 1

    def fit_to(self, q: Tensor, k: Tensor) -> "Packed":
        """Check this layout against q and k; lists become tensors.

        Values in the memory of a GPU are taken as they are: reading them would wait for it.
        """
        if len(q) != 1:
            raise ShapeError(
                f"A packed batch is one row, (1, H, L, D); got q {tuple(q.shape)}. "
                "Use q.transpose(0, 1)[None] for packed queries of shape (L, H, D)."
            )
        queries = _as_starts(self.query_starts, "query_starts", q.device)
        keys = queries
        if self.key_starts is not None:
            keys = _as_starts(self.key_starts, "key_starts", q.device)
        if len(keys) != len(queries):
            raise ShapeError(
                f"query_starts and key_starts must have one entry per sequence and one more; got "
                f"{len(queries)} and {len(keys)} entries."
            )
        _check_ends(queries, q.shape[2], "query_starts", "queries")
        if self.block_table is None:
            if len(k) == 1:  # otherwise the check of q and k says so
                _check_ends(keys, k.shape[2], "key_starts", "keys")
            return replace(self, query_starts=queries, key_starts=keys, n_keys=k.shape[2])
        table = self._check_table(keys, k)
        n_keys = int(keys[-1]) if self.n_keys is None else self.n_keys
        if keys.device.type == "cpu":
            _check_ends(keys, n_keys, "key_starts", "keys")
        return Packed(queries, keys, table, n_keys)

    def keys_of(
        self, k: Float[Tensor, "_ K _ D"], sequence: int, start: int, stop: int
    ) -> Float[Tensor, "1 K _ D"]:
        """The keys of one sequence: a view, or a copy from the blocks of the cache."""
        if self.block_table is None:
            return k[:, :, start:stop]
        n = stop - start
        blocks = self.block_table[sequence, : -(-n // k.shape[2])].long()
        return k[blocks].transpose(0, 1).flatten(1, 2)[None, :, :n]  # P K C D → 1 K S D

    def _check_table(self, keys: Tensor, k: Tensor) -> Int[Tensor, "N pages"]:
        table, size = cast(Tensor, self.block_table), k.shape[2]
        if table.ndim != 2 or len(table) != self.n_sequences or table.is_floating_point():
            raise ShapeError(
                f"block_table must list whole numbers, one row for each of {self.n_sequences} "
                f"sequences; got {table.dtype} of shape {tuple(table.shape)}."
            )
        if table.device != k.device:
            raise DtypeError(
                f"block_table must be on the device of k; got {table.device} and {k.device}. "
                f"Use block_table.to({str(k.device)!r})."
            )
        if k.device.type != "cpu":
            return table.to(torch.int32)
        longest = int(keys.diff().max()) if self.n_sequences else 0
        if longest > table.shape[1] * size:
            raise ShapeError(
                f"A sequence of {longest} keys needs {-(-longest // size)} blocks of {size}; "
                f"block_table has {table.shape[1]} columns."
            )
        used = torch.arange(table.shape[1]) * size < keys.diff()[:, None]
        named = table[used]
        if named.numel() and not 0 <= int(named.min()) <= int(named.max()) < len(k):
            raise ShapeError(
                f"block_table must name blocks 0 … {len(k) - 1}; got values from "
                f"{int(named.min())} to {int(named.max())}."
            )
        return table.to(torch.int32)


def _as_starts(starts: Starts, name: str, device: torch.device) -> Int[Tensor, " n"]:
    tensor = starts if isinstance(starts, Tensor) else torch.tensor(list(starts), device=device)
    if tensor.ndim != 1 or len(tensor) < 2 or tensor.is_floating_point():
        raise ShapeError(
            f"{name} must be cumulative lengths, one entry per sequence and one more; got "
            f"{tensor.dtype} of shape {tuple(tensor.shape)}. Sequences of 3 and 2 are [0, 3, 5]."
        )
    if tensor.device != device:
        raise DtypeError(
            f"{name} must be on the device of q; got {tensor.device} and q on {device}. "
            f"Use {name}.to({str(device)!r})."
        )
    if device.type == "cpu" and bool((tensor.diff() < 0).any() | (tensor[0] != 0)):
        raise ShapeError(f"{name} must begin with 0 and never fall; got {_show(tensor)}.")
    return tensor.to(torch.int32)


def _check_ends(starts: Tensor, length: int, name: str, what: str) -> None:
    if starts.device.type == "cpu" and int(starts[-1]) != length:
        raise ShapeError(f"{name} must end at the number of {what}, {length}; got {_show(starts)}.")


def _show(starts: Tensor) -> str:
    values = starts.tolist()
    return str(values) if len(values) <= 8 else f"[{values[0]}, …, {values[-1]}]"
