"""Two runs of one text side by side, up to the first token in which their texts differ."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.analysis.bisection.measures import tolerance
from glassformer.errors import TraceError
from glassformer.functional.backends import streaming
from glassformer.functional.checks import check_scoring
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import CHOSEN_ROWS
from glassformer.tracing.stream import Stream
from glassformer.tracing.trace import Run

_EXACT = torch.float64


@dataclass(eq=False)
class AlignedRuns:
    """The last runs of two traces, and what of them can be compared."""

    first: Run
    second: Run
    sequence: int = 0

    @cached_property
    def dtypes(self) -> tuple[torch.dtype, torch.dtype]:
        """What each run usually computes in: one layer in another type is a difference."""
        usual = [
            Counter(site.q.dtype for site in run.sites.values()).most_common(1)[0][0]
            for run in (self.first, self.second)
        ]
        return usual[0], usual[1]

    @cached_property
    def tolerance(self) -> float:
        return tolerance(*self.dtypes)

    def common_length(self, text: str) -> int | None:
        """How many tokens the texts of this name share from the beginning; None: unknown."""
        a, b = (run.texts.get(text) for run in (self.first, self.second))
        if a is None or b is None:
            return None
        a, b = (self._row(text.tokens) for text in (a, b))
        n = min(len(a), len(b))
        other = (a[:n].cpu() != b[:n].cpu()).nonzero()
        return int(other[0]) if len(other) else n

    def _row(self, tokens: Int[Tensor, "B L"]) -> Int[Tensor, " L"]:
        if not 0 <= self.sequence < len(tokens):
            raise TraceError(
                f"Both traces must have sequence {self.sequence}; one has sequences 0 … "
                f"{len(tokens) - 1}."
            )
        return tokens[self.sequence]

    def pair(self, name: str) -> "SitePair | None":
        """The sites of this name; None where one lacks it, or has other heads."""
        a, b = self.first.sites.get(name), self.second.sites.get(name)
        if a is None or b is None or a.head_numbers != b.head_numbers:
            return None
        if a.q.shape[-1] != b.q.shape[-1] or a.k.shape[1] != b.k.shape[1]:
            return None
        queries = a.queries.removesuffix(CHOSEN_ROWS)  # rows are positions in the whole text
        limits = self.common_length(queries), self.common_length(a.keys)
        return SitePair(a, b, self.sequence, self.tolerance, *limits)

    def stream_rows(self, a: Stream, b: Stream) -> tuple[list[int], list[int], list[int]]:
        """The positions that both streams kept, and where each of them holds these."""
        limit = self.common_length(a.text)
        return _shared(_all(a.rows, a.start.shape[1]), _all(b.rows, b.start.shape[1]), limit)


@dataclass(eq=False)
class SitePair:
    """One site in both runs: the rows and columns that both have, in float64."""

    first: Site
    second: Site
    sequence: int
    tolerance: float
    n_queries: int | None
    n_keys: int | None

    @cached_property
    def rows(self) -> tuple[list[int], list[int], list[int]]:
        """The positions of the queries, and their rows in either site."""
        a, b = self.first, self.second
        return _shared(_all(a.rows, a.q.shape[2]), _all(b.rows, b.q.shape[2]), self.n_queries)

    @cached_property
    def n_columns(self) -> int:
        n = min(self.first.k.shape[2], self.second.k.shape[2])
        return n if self.n_keys is None else min(n, self.n_keys)

    @property
    def positions(self) -> list[int]:
        return self.rows[0]

    def operands(self, name: str) -> tuple[Float[Tensor, "H R D"], Float[Tensor, "H R D"]]:
        """q, k, v or out of both; k and v have the heads that several queries share."""
        found = []
        for i, site in enumerate((self.first, self.second)):
            tensor = getattr(site, name)[self.sequence]
            is_key = name in ("k", "v")
            tensor = tensor[:, : self.n_columns] if is_key else tensor[:, self.rows[i + 1]]
            found.append(tensor.to("cpu", _EXACT))
        return found[0], found[1]

    @cached_property
    def exact(self) -> tuple[Float[Tensor, "H R E"], Float[Tensor, "H R E"]]:
        """What the operands of each give, in float64."""
        found = []
        for i, site in enumerate((self.first, self.second)):
            q, k, v = (t.detach().to(_EXACT) for t in (site.q, site.k, site.v))
            with torch.no_grad():
                out = streaming.attend(q, k, v, check_scoring(q, k, **site.options))
            found.append(out[self.sequence][:, self.rows[i + 1]].cpu())
        return found[0], found[1]

    def has_outputs(self) -> bool:
        return self.first.out is not None and self.second.out is not None

    @cached_property
    def open_rows(self) -> Bool[Tensor, "H R"]:
        """Rows that see a key: what kernels return for others means nothing."""
        seen = [
            site.visible(sequence=self.sequence)[:, self.rows[i + 1]].cpu() > 0
            for i, site in enumerate((self.first, self.second))
        ]
        return seen[0] & seen[1]

    def scales(self) -> tuple[float, float]:
        a, b = (check_scoring(s.q, s.k, **s.options).scale for s in (self.first, self.second))
        return a, b


def _all(rows: tuple[int, ...] | None, n: int) -> tuple[int, ...]:
    return tuple(range(n)) if rows is None else rows


def _shared(
    a: tuple[int, ...], b: tuple[int, ...], limit: int | None
) -> tuple[list[int], list[int], list[int]]:
    both = sorted(p for p in set(a) & set(b) if limit is None or p < limit)
    at_a, at_b = ({p: i for i, p in enumerate(rows)} for rows in (a, b))
    return both, [at_a[p] for p in both], [at_b[p] for p in both]
