"""Masks per sequence: padding, and several documents packed into one row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional.cells import Blocks, Bounds, Cells, Extent, block_ends
from glassformer.functional.graph_capture import is_known_true, is_readable
from glassformer.functional.masks.mask import Mask


@dataclass(frozen=True, eq=False, repr=False)
class Padding(Mask):
    """Each sequence has its own length; the padding beyond it is hidden.

    `of` says what is padded: the keys (usual), the queries (their rows become empty), or both.
    `side` is where the padding is: after the text ("right") or before it ("left").

    >>> print(Padding([2, 3]).dense(1, 3, batch=2)[:, 0, 0].int())
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    lengths: Int[Tensor, " B"] | Sequence[int]
    of: Literal["keys", "queries", "both"] = "keys"
    side: Literal["right", "left"] = "right"

    def __post_init__(self) -> None:
        if self.of not in ("keys", "queries", "both"):
            raise ConfigError(f"Padding(of=…) is 'keys', 'queries' or 'both'; got {self.of!r}.")
        if self.side not in ("right", "left"):
            raise ConfigError(f"Padding(side=…) is 'right' or 'left'; got {self.side!r}.")

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        length = self._lengths[cells.b]
        keys = self._is_inside(cells.k, cells.S, length)
        queries = self._is_inside(cells.q, cells.L, length)
        return {"keys": keys, "queries": queries}[self.of] if self.of != "both" else keys & queries

    def bounds(self, blocks: Blocks) -> Bounds:
        length = self._lengths.view(-1, 1, 1, 1)
        near, far = (0, 1) if self.side == "right" else (1, 0)
        q, k = blocks.q_ends(), blocks.k_ends()
        keys = [self._is_inside(k[i], blocks.S, length) for i in (near, far)]
        queries = [self._is_inside(q[i], blocks.L, length) for i in (near, far)]
        if self.of == "both":
            return Bounds(keys[0] & queries[0], keys[1] & queries[1])
        return Bounds(*(keys if self.of == "keys" else queries))

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        if not isinstance(self.lengths, Tensor):
            tensor = torch.tensor(list(self.lengths), dtype=torch.long, device=device)
            return replace(self, lengths=tensor).fit_to(extent, device)
        lengths = self.lengths
        if lengths.shape != (extent.B,) or lengths.is_floating_point():
            raise ShapeError(
                f"Padding needs one whole number per sequence of the batch, ({extent.B},); got "
                f"{lengths.dtype} of shape {tuple(lengths.shape)}."
            )
        fitted = super().fit_to(extent, device)
        if is_readable(lengths) and extent.B:
            keys, queries = self.of != "queries", self.of != "keys"
            limit = min(extent.S if keys else extent.L, extent.L if queries else extent.S)
            low, high = self._range()
            if low < 0 or high > limit:
                raise ShapeError(
                    f"Padding lengths must lie in 0 … {limit}, the length of the {self.of}; got "
                    f"{low} to {high}. Count the tokens that are not padding."
                )
        return fitted

    def data_extent(self) -> Extent:
        return Extent(len(self.lengths), 1, 0, 0)

    def min_extent(self) -> Extent:
        longest = int(self._lengths.max()) if len(self.lengths) else 0
        L, S = (0 if self.of == "keys" else longest), (0 if self.of == "queries" else longest)
        return Extent(1, 1, L, S)

    @property
    def _lengths(self) -> Tensor:
        return torch.as_tensor(self.lengths)

    def _range(self) -> tuple[int, int]:
        # Read once per mask, not once per layer: reading from a GPU synchronizes with it.
        if "_seen" not in self.__dict__:
            object.__setattr__(self, "_seen", tuple(torch.stack(self.lengths.aminmax()).tolist()))  # type: ignore[union-attr]
        return self.__dict__["_seen"]

    def _is_inside(self, place: Tensor, end: int | Tensor, length: Tensor) -> Tensor:
        return place < length if self.side == "right" else place >= end - length


@dataclass(frozen=True, eq=False, repr=False)
class Documents(Mask):
    """Several texts packed into one row: a query sees only keys of its own document.

    `ids` is the document number of every key, (S,) or (B, S). Queries are the last L positions, as
    with a cache; otherwise pass `query_ids`.

    >>> print(Documents([0, 0, 1]).dense(3)[0, 0].int())
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """

    ids: Int[Tensor, " S"] | Int[Tensor, "B S"] | Sequence[int]
    query_ids: Int[Tensor, " L"] | Int[Tensor, "B L"] | Sequence[int] | None = None

    def allows(self, cells: Cells) -> Bool[Tensor, "..."]:
        if self.query_ids is None:
            asking = _pick(self._keys, cells.b, cells.query_positions(None))
        else:
            asking = _pick(self._queries, cells.b, cells.q)
        return asking == _pick(self._keys, cells.b, cells.k)

    def bounds(self, blocks: Blocks) -> Bounds:
        asking, keys = self.numbers(blocks.L, blocks.S)
        k_low, k_high = (e[:, None, None, :] for e in block_ends(keys, blocks.cols))
        q_low, q_high = (e[:, None, :, None] for e in block_ends(asking, blocks.rows))
        meet = (q_low <= k_high) & (k_low <= q_high)
        return Bounds(meet, (q_low == q_high) & (k_low == k_high) & meet)

    def numbers(self, L: int, S: int) -> tuple[Int[Tensor, "b L"], Int[Tensor, "c S"]]:
        """The documents of L queries and S keys: one row for all sequences, or one for each."""
        asking, keys = torch.atleast_2d(self._queries), torch.atleast_2d(self._keys)
        return asking[:, S - L :] if self.query_ids is None else asking, keys

    def fit_to(self, extent: Extent, device: torch.device) -> Mask:
        if self.query_ids is None and is_known_true(extent.L > extent.S):
            raise ShapeError(
                "Documents(ids) assumes that the queries are the last L of S keys and needs L ≤ S; "
                f"got L={extent.L}, S={extent.S}. Give query_ids of shape ({extent.B}, {extent.L})."
            )
        lists = {name: ids for name, ids in self._list_ids() if not isinstance(ids, Tensor)}
        if lists:
            tensors = {name: torch.tensor(ids, device=device) for name, ids in lists.items()}
            return replace(self, **tensors).fit_to(extent, device)
        for name, ids in self._list_ids():
            length = extent.S if name == "ids" else extent.L
            if tuple(ids.shape) not in ((length,), (1, length), (extent.B, length)):
                raise ShapeError(
                    f"Documents({name}) must be ({length},) or ({extent.B}, {length}); got "
                    f"{tuple(ids.shape)}."
                )
        return super().fit_to(extent, device)

    def data_extent(self) -> Extent:
        keys = torch.atleast_2d(self._keys)
        return Extent(keys.shape[0], 1, self._queries.shape[-1], keys.shape[-1])

    @property
    def _keys(self) -> Tensor:
        return torch.as_tensor(self.ids)

    @property
    def _queries(self) -> Tensor:
        return torch.as_tensor(self.ids if self.query_ids is None else self.query_ids)

    def _list_ids(self) -> list[tuple[str, Any]]:
        given = (("ids", self.ids), ("query_ids", self.query_ids))
        return [(name, ids) for name, ids in given if ids is not None]


def _pick(ids: Tensor, b: Tensor, place: Tensor) -> Tensor:
    if ids.ndim == 1:
        return ids[place]
    return ids[b if ids.shape[0] > 1 else b * 0, place]
