"""One attention site: the operands that passed through it, and all that follows from them.

q, k, v, mask, bias and scale are linear in the length of a text and say everything. Weights, maps
and statistics are derived exactly, on demand, and never as a whole matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional import Bias, Mask, attention
from glassformer.functional.arithmetic import (
    CellArithmetic,
    RowArithmetic,
    cell_arithmetic,
    row_arithmetic,
)
from glassformer.functional.backends import streaming
from glassformer.functional.cells import Extent, Indices, Tile, as_indices
from glassformer.functional.checks import check_scoring
from glassformer.functional.statistics.pooling import Map
from glassformer.functional.statistics.summary import (
    AttentionStatistics,
    Top,
    attention_lse,
    attention_rows,
    attention_statistics,
    attention_tile,
)
from glassformer.functional.visibility import visible_cells, visible_keys
from glassformer.tracing.selection import select_heads

Kind = Literal["self", "cross"]


@dataclass(eq=False, kw_only=True)
class Site:
    """Where queries met keys: `weights`, `map`, `entropy` … are computed when asked for.

    Methods look at one sequence of a batch (default: the first), and at one head or, with
    head=None, at all of them. What costs a pass over the whole site is cached.

    Where only some heads were recorded, `heads` says which, and head= names one by its number in
    the model. Where only some rows were, they are counted from 0 here, and `rows` says which of the
    `n_rows` that passed they are.

    >>> q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    >>> weights = Site(name="example", q=q, k=k, v=v).weights(head=1, rows=[4])
    >>> weights.shape, round(float(weights.sum()), 4)
    (torch.Size([1, 5]), 1.0)
    """

    name: str
    q: Float[Tensor, "B H L D"]
    k: Float[Tensor, "B K S D"]
    v: Float[Tensor, "B K S E"]
    mask: Mask | None = None
    bias: Bias | None = None
    scale: float | None = None
    softcap: float | None = None
    out: Float[Tensor, "B H L E"] | None = None  # what the model computed
    queries: str = "tokens"  # the text that the rows belong to
    keys: str = "tokens"  # and the columns
    heads: tuple[int, ...] | None = None  # the numbers of those that were recorded, None: all
    rows: tuple[int, ...] | None = None
    n_rows: int | None = None
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_scoring(self.q, self.k, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        """Mask, bias, scale and softcap, as the functions of attention take them."""
        return {
            "mask": self.mask,
            "bias": self.bias,
            "scale": self.scale,
            "softcap": self.softcap,
        }

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, H, L, S): the shape of the weights, which are never stored."""
        B, H, L, _ = self.q.shape
        return B, H, L, self.k.shape[2]

    @property
    def n_heads(self) -> int:
        return self.q.shape[1]

    @property
    def head_numbers(self) -> tuple[int, ...]:
        """The numbers of its heads in the model, in order."""
        return tuple(range(self.n_heads)) if self.heads is None else self.heads

    @property
    def query_positions(self) -> Int[Tensor, " L"]:
        """The key position of each query; the last query of the text is at the last key."""
        L, S = self.shape[2:]
        if self.rows is None or self.n_rows is None:
            return torch.arange(S - L, S, device=self.q.device)
        return torch.tensor(self.rows, device=self.q.device) + (S - self.n_rows)

    @property
    def lse(self) -> Float[Tensor, "B H L"]:
        """The log-sum-exp of every row of scores: with it any cell is exact."""
        if "lse" not in self._kept:
            self._kept["lse"] = attention_lse(self.q, self.k, **self.options)
        return self._kept["lse"]

    def weights(
        self,
        head: int | None = None,
        rows: Indices | None = None,
        cols: Indices | None = None,
        *,
        sequence: int = 0,
    ) -> Float[Tensor, "... R C"]:
        """The weights of these rows and columns, (R, C), or (H, R, C) for all heads."""
        self._check(head, sequence)
        _, _, L, S = self.shape
        rows = slice(0, L) if rows is None else rows
        lse = None if cols is None and "lse" not in self._kept else self.lse
        site = self if head is None else self.single_head(head)
        if lse is None:  # whole rows are their own normalisation: no pass over all the others
            found = attention_rows(site.q, site.k, rows, **site.options)
        else:
            lse = lse if head is None else lse[:, [self._index(head)]]
            cols = slice(0, S) if cols is None else cols
            found = attention_tile(site.q, site.k, lse, rows, cols, **site.options)
        return found[sequence] if head is None else found[sequence, 0]

    def single_head(self, head: int) -> "Site":
        """The site as if it had this head alone, with its number; q, k and v are views."""
        self._check(head, 0)
        index = self._index(head)
        own = index // (self.n_heads // self.k.shape[1])
        mask, bias = (select_heads(part, (index,)) for part in (self.mask, self.bias))
        return replace(
            self,
            q=self.q[:, index : index + 1],
            k=self.k[:, own : own + 1],
            v=self.v[:, own : own + 1],
            out=None if self.out is None else self.out[:, index : index + 1],
            mask=mask,
            bias=bias,
            heads=(head,),
            _kept={},
        )

    def statistics(
        self,
        *,
        map_size: int | tuple[int, int] | None = None,
        top: int | None = None,
        distance: bool = True,
        progress: Callable[[float], None] | None = None,
    ) -> AttentionStatistics:
        """Everything that one pass over the site yields, for all sequences and heads; kept.

        Without `distance` it is faster on a GPU.
        """
        key = f"statistics {map_size} {top} {distance}"
        if key not in self._kept:
            found = attention_statistics(
                self.q,
                self.k,
                **self.options,
                map_size=map_size,
                top=top,
                distance=distance,
                query_positions=None if self.rows is None else self.query_positions,
                lse=self._kept.get("lse"),
                progress=progress,
            )
            self._kept["lse"] = found.lse
            self._kept[key] = found
            if distance or "statistics" not in self._kept:
                self._kept["statistics"] = found
        return self._kept[key]

    def _any_statistics(self) -> AttentionStatistics:
        return self._kept["statistics"] if "statistics" in self._kept else self.statistics()

    def entropy(self, head: int | None = None, *, sequence: int = 0) -> Float[Tensor, "..."]:
        """The entropy of each query's attention, in nats: 0 one key, log S all keys alike."""
        return self._select(self._any_statistics().entropy, head, sequence)

    def allowed(
        self,
        head: int | None = None,
        rows: Indices | None = None,
        cols: Indices | None = None,
        *,
        sequence: int = 0,
    ) -> Bool[Tensor, "... R C"]:
        """Which of these rows may see which of these columns, (R, C), or (H, R, C)."""
        extent, device = Extent(*self.shape), self.q.device
        queries = as_indices(slice(None) if rows is None else rows, extent.L, "rows", device)
        keys = as_indices(slice(None) if cols is None else cols, extent.S, "cols", device)
        mask = None if self.mask is None else self.mask.fit_to(extent, device)
        bias = None if self.bias is None else self.bias.fit_to(extent, device)
        cells = visible_cells(Tile(extent, queries, keys, device), mask, bias)
        cells = cells.expand(*extent[:2], len(queries), len(keys))
        return self._select(cells, head, sequence)

    def visible(self, head: int | None = None, *, sequence: int = 0) -> Int[Tensor, "..."]:
        """How many keys each query may see, by the mask and by biases of −∞."""
        if "visible" not in self._kept:
            self._kept["visible"] = visible_keys(
                Extent(*self.shape), self.q.device, mask=self.mask, bias=self.bias
            )
        return self._select(self._kept["visible"], head, sequence)

    def sharpness(self, head: int | None = None, *, sequence: int = 0) -> Float[Tensor, "..."]:
        """How sharp each head is on average over its queries: 0 even attention, 1 a single key.

        A query's sharpness is 1 − entropy / log n, where n is the number of keys that it may see;
        queries that see fewer than two keys have no choice and are left out. NaN if all are.
        """
        n = self.visible(head, sequence=sequence)
        counted = n > 1
        share = self.entropy(head, sequence=sequence).float() / n.clamp(min=2).log()
        each = (1 - share).clamp(0.0, 1.0).where(counted, 0.0)
        return each.sum(-1) / counted.sum(-1)  # 0 / 0 is NaN

    def peak(self, head: int | None = None, *, sequence: int = 0) -> Float[Tensor, "..."]:
        """The largest weight of each query."""
        return self._select(self._any_statistics().peak, head, sequence)

    def distance(self, head: int | None = None, *, sequence: int = 0) -> Float[Tensor, "..."]:
        """The mean distance of each query's attention, in tokens."""
        found = self._any_statistics().distance
        if found is None:
            found = self.statistics().distance
            assert found is not None
        return self._select(found, head, sequence)

    def received(self, head: int | None = None, *, sequence: int = 0) -> Float[Tensor, "..."]:
        """The attention that each key receives from all queries together."""
        return self._select(self._any_statistics().received, head, sequence)

    def top(self, head: int, k: int = 5, *, sequence: int = 0) -> Top:
        """The k keys that each query attends to most, strongest first: indices and weights."""
        found = self.statistics(top=k).top
        assert found is not None
        return Top(
            self._select(found.indices, head, sequence), self._select(found.weights, head, sequence)
        )

    def map(self, head: int, size: int | tuple[int, int] = 64, *, sequence: int = 0) -> Map:
        """The whole matrix of a head, pooled into size × size cells."""
        found = self.statistics(map_size=size).map
        assert found is not None
        return Map(
            self._select(found.mass, head, sequence),
            self._select(found.maximum, head, sequence),
            found.row_edges,
            found.col_edges,
        )

    def arithmetic(self, head: int, query: int, key: int, *, sequence: int = 0) -> CellArithmetic:
        """One cell, operand by operand, as on paper."""
        self._check(head, sequence)
        return cell_arithmetic(
            self.q,
            self.k,
            self.v,
            query=query,
            key=key,
            head=self._index(head),
            batch=sequence,
            **self.options,
        )

    def row(self, head: int, query: int, *, sequence: int = 0) -> RowArithmetic:
        """One row, step by step: dot products, scaling, mask, softmax, weighted sum."""
        self._check(head, sequence)
        return row_arithmetic(
            self.q,
            self.k,
            self.v,
            query=query,
            head=self._index(head),
            batch=sequence,
            **self.options,
        )

    def difference_from_output(self) -> float:
        """How far the derived weights times v lie from what the model computed, at most.

        In the model's own precision: the sum is rounded as its output is.
        """
        if self.out is None:
            raise TraceError(
                f"{self.name} was recorded without the model's output; watch with outputs=True "
                "to compare with it."
            )
        site = check_scoring(self.q, self.k, **self.options)
        with torch.no_grad():
            derived = streaming.attend(self.q.double(), self.k.double(), self.v.double(), site)
        return float((derived - self.out.double()).abs().max()) if self.out.numel() else 0.0

    def head_outputs(self) -> Float[Tensor, "B H L E"]:
        """What every head reads, Σ α v, by the fastest exact backend; kept once computed."""
        if "outputs" not in self._kept:
            with torch.no_grad():
                self._kept["outputs"] = attention(self.q, self.k, self.v, **self.options)
        return self._kept["outputs"]

    def to(self, device: torch.device | str) -> "Site":
        """The same site on another device; cached results are dropped."""
        parts = ("q", "k", "v", "mask", "bias", "out")
        moved = {n: part.to(device) for n in parts if (part := getattr(self, n)) is not None}
        return replace(self, **moved, _kept={})

    def _select(self, values: Tensor, head: int | None, sequence: int) -> Tensor:
        self._check(head, sequence)
        return values[sequence] if head is None else values[sequence, self._index(head)]

    def _index(self, head: int) -> int:
        return head if self.heads is None else self.heads.index(head)

    def _check(self, head: int | None, sequence: int) -> None:
        B, H = self.shape[:2]
        if head is not None and head not in self.head_numbers:
            if self.heads is None:
                raise TraceError(f"{self.name} has heads 0 … {H - 1}; got head={head}.")
            recorded = ", ".join(map(str, self.heads))
            raise TraceError(f"Of {self.name}, heads {recorded} were recorded; got head={head}.")
        if not 0 <= sequence < B:
            raise TraceError(f"{self.name} has sequences 0 … {B - 1}; got sequence={sequence}.")
