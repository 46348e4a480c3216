"""The cell of attention that changes most, with its arithmetic in both runs."""

from dataclasses import dataclass

import torch

from glassformer.analysis.bisection.aligned_runs import AlignedRuns, SitePair
from glassformer.functional.arithmetic import CellArithmetic

_MOST_CELLS = 1 << 24  # of weights held at once


@dataclass(frozen=True, kw_only=True)
class ComparedCell:
    """One query and one key, as both runs computed them."""

    site: str
    head: int
    query: int
    key: int
    first: CellArithmetic
    second: CellArithmetic

    @property
    def coordinate(self) -> int:
        """The coordinate of q and k whose product changes most."""
        pairs = zip(self.first.products, self.second.products, strict=True)
        apart = [abs(b - a) for a, b in pairs]
        return apart.index(max(apart))


def find_cell(runs: AlignedRuns, origin: str | None) -> ComparedCell | None:
    """The weight that changes most, at the origin or else at the first site where one changes."""
    names = list(runs.first.sites)
    if origin in names:
        names = names[names.index(origin) :]
    for name in names:
        pair = runs.pair(name)
        place = None if pair is None else _find_largest(pair)
        if pair is not None and place is not None:
            head, row, key = place
            number = pair.first.head_numbers[head]
            cells = [
                site.arithmetic(number, pair.rows[i + 1][row], key, sequence=pair.sequence)
                for i, site in enumerate((pair.first, pair.second))
            ]
            return ComparedCell(
                site=name,
                head=number,
                query=pair.positions[row],
                key=key,
                first=cells[0],
                second=cells[1],
            )
    return None


def _find_largest(pair: SitePair) -> tuple[int, int, int] | None:
    """Head, row and key of the largest change of a weight; None where none changes."""
    n, H = len(pair.positions), pair.first.n_heads
    step = max(1, _MOST_CELLS // max(1, H * pair.n_columns))
    best, place = 1e-6, None
    for start in range(0, n, step):
        some = slice(start, start + step)
        a, b = (
            site.weights(
                rows=pair.rows[i + 1][some], cols=range(pair.n_columns), sequence=pair.sequence
            ).double()
            for i, site in enumerate((pair.first, pair.second))
        )
        apart = (b.cpu() - a.cpu()).abs().nan_to_num(0.0)
        value = float(apart.max()) if apart.numel() else 0.0
        if value > best:
            best = value
            at = torch.unravel_index(apart.argmax(), apart.shape)
            place = int(at[0]), start + int(at[1]), int(at[2])
    return place
