"""Texts laid end to end in one row, whose padded form is known: attention can run side by side.

row      a b c A B              N tokens of B texts, no padding: they start at 0 and 3, and end at 5
padded   a b c                  (B, longest): `places` says which token of the row a cell holds,
         A B ·                  `cells` which cell a token has, counted row by row
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.errors import ShapeError
from glassformer.functional.cells import Blocks, Bounds, Cells, Extent
from glassformer.functional.masks.mask import Mask
from glassformer.functional.masks.sequences import Documents


class PackedRow(NamedTuple):
    """Where the tokens of some texts are in one row, and where they would be with padding.

    >>> row = PackedRow.of([3, 2])
    >>> row.documents.tolist(), row.positions.tolist()
    ([0, 0, 0, 1, 1], [0, 1, 2, 0, 1])
    """

    starts: Int[Tensor, " B_and_1"]  # the last of them is N
    cells: Int[Tensor, " N"]
    places: Int[Tensor, "B longest"]  # in padding, that of the text's last token

    @classmethod
    def of(
        cls, lengths: Sequence[int] | Int[Tensor, " B"], longest: int | None = None
    ) -> "PackedRow":
        """The row of texts with these lengths, padded to the longest of them or to `longest`.

        Lengths are read: keep them in the host's memory.
        """
        own = torch.as_tensor(lengths, dtype=torch.long)
        if own.ndim != 1 or len(own) == 0 or int(own.min()) < 1:
            raise ShapeError(
                f"Packed texts need a length of at least 1 for each text; got {own.tolist()}."
            )
        steps = torch.arange(longest or int(own.max()), device=own.device)
        inside = steps < own[:, None]
        starts = F.pad(own.cumsum(0), (1, 0))
        places = starts[:-1, None] + torch.minimum(steps, own[:, None] - 1)
        return cls(starts.int(), inside.flatten().nonzero()[:, 0], places)

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        """The number of tokens of each text."""
        return self.starts.diff()

    @property
    def documents(self) -> Int[Tensor, " N"]:
        """Which text each token belongs to."""
        return self.cells // self.places.shape[1]

    @property
    def positions(self) -> Int[Tensor, " N"]:
        """The position of each token in its text."""
        return self.cells % self.places.shape[1]


@dataclass(frozen=True, eq=False, repr=False)
class Sequences(Mask):
    """Packed texts of known lengths: a query sees only the keys of its own text.

    The same as `Documents`, and faster: attention computes the texts side by side, with padding
    where a kernel needs it, while the rest of a model computes tokens alone. In cross-attention the
    queries have lengths of their own.

    >>> print(Sequences.of([2, 1]).dense(3)[0, 0].int())
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """

    starts: Int[Tensor, " B_and_1"]
    cells: Int[Tensor, " S"]
    places: Int[Tensor, "B longest"]
    query_starts: Int[Tensor, " B_and_1"] | None = None
    query_cells: Int[Tensor, " L"] | None = None
    query_places: Int[Tensor, "B longest_query"] | None = None

    @classmethod
    def of(
        cls,
        lengths: Sequence[int] | Int[Tensor, " B"],
        query_lengths: Sequence[int] | Int[Tensor, " B"] | None = None,
    ) -> "Sequences":
        """Texts with these lengths, and those of the queries where they differ."""
        queries = None if query_lengths is None else PackedRow.of(query_lengths)
        return cls.between(PackedRow.of(lengths), queries)

    @classmethod
    def between(cls, keys: PackedRow, queries: PackedRow | None = None) -> "Sequences":
        """The mask of these rows; without queries, the keys' own texts ask."""
        if queries is None:
            return cls(*keys)
        if len(queries.places) != len(keys.places):
            raise ShapeError(
                "Queries and keys must be packed from as many texts; got "
                f"{len(queries.places)} and {len(keys.places)}."
            )
        return cls(*keys, *queries)

    @property
    def keys(self) -> PackedRow:
        """The texts whose keys are seen."""
        return PackedRow(self.starts, self.cells, self.places)

    @property
    def queries(self) -> PackedRow:
        """The texts that ask: those of the keys, or others."""
        if self.query_starts is None or self.query_cells is None or self.query_places is None:
            return self.keys
        return PackedRow(self.query_starts, self.query_cells, self.query_places)

    @property
    def is_cross(self) -> bool:
        """Whether the queries are other texts than the keys."""
        return self.query_cells is not None

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        return self._documents.allows(cells)

    def bounds(self, blocks: Blocks) -> Bounds:
        return self._documents.bounds(blocks)

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        n_queries, n_keys = self.data_extent()[2:]
        if extent.B != 1 or (n_queries, n_keys) != (extent.L, extent.S):
            raise ShapeError(
                f"Packed texts are one row of {n_queries} queries and {n_keys} keys; got a batch "
                f"of {extent.B} with L={extent.L}, S={extent.S}."
            )
        return super().fit_to(extent, device)

    def data_extent(self) -> Extent:
        return Extent(1, 1, len(self.queries.cells), len(self.cells))

    @property
    def _documents(self) -> Documents:
        return Documents(self.keys.documents, self.queries.documents if self.is_cross else None)
