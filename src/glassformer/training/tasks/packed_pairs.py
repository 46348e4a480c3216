"""Pairs of texts without padding: the sources of a batch are one row, its targets another.

    sources  Ein Hund schläft </s> Ja </s>      attention keeps the texts of a row apart
    targets  A dog sleeps </s> Yes </s>

A GPU prepares the steps of one shape once, so there all batches are given the same: as many pairs
as fit, drawn regardless of their lengths, and filled up with texts whose targets are ignored.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.functional import Sequences
from glassformer.functional.masks import PackedRow
from glassformer.training.batches import Batch, Rows, check_lengths, fill_batches
from glassformer.training.loss import IGNORED

_ROWS = {"source": "source", "target": "tokens"}  # the texts of each side


class PackedShape(NamedTuple):
    """The shape of all packed batches: tokens of each side, texts, and a bound of their lengths.

    Some of the texts only fill the rows up: enough of them for an empty batch, a token each for a
    full one.
    """

    source: int
    target: int
    texts: int
    longest: int
    filling: int  # the least number of texts that fill up

    @classmethod
    def of(
        cls, lengths: np.ndarray, *, max_tokens: int, max_texts: int | None = None
    ) -> "PackedShape":
        """Room for pairs of these lengths (N, 2), with max_tokens on the longer side.

        >>> PackedShape.of(np.array([[4, 8], [6, 12]]), max_tokens=1000)
        PackedShape(source=516, target=1016, texts=134, longest=64, filling=16)
        """
        check_lengths(lengths.max(axis=1), max_tokens)
        means = lengths.mean(axis=0)
        # The sum of so many random lengths hardly differs from its mean by a tenth.
        n_texts = max_texts or int(1.1 * max_tokens / means.max()) + 8
        filling = max(16, -(-max_tokens // 128))
        source, target = (
            max(int(np.ceil(max_tokens * mean / means.max())), most + n_texts - 1) + filling
            for mean, most in zip(means, lengths.max(axis=0).tolist(), strict=True)
        )
        longest = max(int(lengths.max()), -(-max(source, target) // filling))
        return cls(source, target, n_texts + filling, longest, filling)

    def fill(self, lengths: np.ndarray, *, seed: int, epoch: int) -> list[Rows]:
        """Batches of random pairs that fit, each text that is missing taken for one token."""
        room = (self.source - self.texts, self.target - self.texts)
        most = self.texts - self.filling
        return fill_batches(lengths - 1, room=room, max_rows=most, seed=seed, epoch=epoch)


def pack_pairs(batch: Batch, room: PackedShape | None = None) -> Batch:
    """The sources end to end in one row, and the targets in another, both filled up to `room`."""
    t = batch.tensors
    own = {
        "source": t["source_lengths"],
        # A share without pairs has one row whose targets are all ignored: one of them stays.
        "target": (t["targets"] != IGNORED).sum(1).clamp(min=1),
    }
    tensors = {}
    for side, name in _ROWS.items():
        lengths, longest, missing = own[side], t[name].shape[1], 0
        inside = torch.arange(longest) < lengths[:, None]
        if room is not None:
            missing = getattr(room, side) - int(lengths.sum())
            lengths = torch.cat([lengths, _split(missing, room.texts - len(lengths))])
            longest = room.longest
        row = PackedRow.of(lengths, longest=longest)
        tensors |= {f"{side}_{field}": each for field, each in row._asdict().items()}
        for each in (name, "targets") if side == "target" else (name,):
            value = IGNORED if each == "targets" else 0
            tensors[each] = F.pad(t[each][inside], (0, missing), value=value)[None]  # → (1, N)
    return Batch(tensors, batch.n_targets, batch.n_tokens)


def _split(total: int, n: int) -> Tensor:
    """n whole numbers that differ by at most 1, whose sum is the total."""
    return (total + torch.arange(n)) // n


def packed_hidden(model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
    """The decoder's hidden states of packed pairs."""
    source, target = (
        PackedRow(*(tensors[f"{side}_{name}"] for name in PackedRow._fields)) for side in _ROWS
    )
    context = model.encode(
        tensors["source"], mask=Sequences.between(source), positions=source.positions
    )
    return model.hidden(
        tensors["tokens"],
        context,
        mask=Sequences.between(target),
        context_mask=Sequences.between(source, target),
        positions=target.positions,
    )
