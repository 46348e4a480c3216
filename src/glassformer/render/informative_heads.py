"""The head to open on, the one whose keys depend most on the query, and its clearest pair of words.

A head is as informative as the mutual information of its queries and keys, in nats:

    I = H(mean of the rows) − mean of H(row)

This is 0 for uniform attention and for a head that always attends to the same key, however sharply.
Only rows and keys that are words count. Everything else (punctuation, special tokens, the first
key, the token itself and its neighbours) is merged into one key, which carries no information.
"""

import unicodedata
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.render.tokens import is_cross, next_tokens, token_names
from glassformer.tracing import Site, Trace

_MOST_ROWS = 128
_MOST_CELLS = 1 << 23  # over all heads of a site
_NEAR = 1  # neighbours on either side to which a word's attention does not count
_FULL = 4  # letters of a word that counts fully; "the" and "le" count less


class Focus(NamedTuple):
    """A site, one of its heads, and the cell to start with."""

    site: Site
    head: int
    row: int
    col: int


def find_most_informative(
    trace: Trace, sites: Sequence[Site], *, head: int | None = None, sequence: int = 0
) -> Focus:
    """The most informative head of these sites, or the given one, and its clearest cell."""
    found: list[tuple[float, float, Focus]] = []
    for site in sites:
        sampled = _SampledSite(trace, site, sequence)
        values = sampled.information().tolist()
        for i, (number, value) in enumerate(zip(site.head_numbers, values, strict=True)):
            if head is None or number == head:
                row, col, weight = sampled.clearest(i)
                found.append((round(value, 6), weight, Focus(site, number, row, col)))
    # In a text of one word every head has zero information: the clearest cell breaks the tie.
    return max(found, key=lambda each: each[:2])[2]


class _SampledSite:
    """The sampled rows of a site, and how much each row and key counts."""

    def __init__(self, trace: Trace, site: Site, sequence: int) -> None:
        _, H, L, S = site.shape
        read, keys = token_names(trace, site, sequence)
        # A row that predicts a word is about that word.
        following = next_tokens(trace, site, sequence)
        about = [after or word for word, after in zip(read, following, strict=True)]
        worth = _worths(trace, site.queries, about)
        self.col_worth = _worths(trace, site.keys, keys)
        choosing = site.visible(sequence=sequence).amax(0).cpu() > 1  # rows with more than one key
        wanted = (choosing & (worth > 0), choosing, torch.ones(L, dtype=torch.bool))
        rows = next(some for some in wanted if bool(some.any())).nonzero()[:, 0]
        n = max(1, min(len(rows), _MOST_ROWS, _MOST_CELLS // max(1, H * S)))
        self.rows = rows[torch.linspace(0, len(rows) - 1, n).round().long()]
        self.row_worth = worth[self.rows]
        self.weights = site.weights(rows=self.rows, sequence=sequence).float().cpu()  # H R S
        self.counts = self._counts(site)

    def _counts(self, site: Site) -> Bool[Tensor, "R S"]:
        """The cells that carry information."""
        S = site.shape[3]
        counts = (self.col_worth > 0).expand(len(self.rows), S).clone()
        if not is_cross(site):
            away = (torch.arange(S) - site.query_positions.cpu()[self.rows][:, None]).abs()
            counts &= away > _NEAR
            if S > 2 * _NEAR + 2:
                counts[:, 0] = False  # an attention sink of many heads
        return counts

    def information(self) -> Float[Tensor, " H"]:
        """The mutual information of queries and keys, for each head."""
        counted = self.weights * self.counts
        rest = (self.weights.sum(-1) - counted.sum(-1)).clamp(min=0)[..., None]
        rows = torch.cat([counted, rest], -1)
        return (_entropy(rows.mean(1)) - _entropy(rows).mean(-1)).clamp(min=0)

    def clearest(self, head: int) -> tuple[int, int, float]:
        """The cell with the largest weight between words, or between any tokens."""
        weights = self.weights[head]
        worth = weights * self.row_worth[:, None] * self.col_worth
        for each in (worth * self.counts, worth, weights * self.counts, weights):
            if bool((each > 0).any()):
                row, col = divmod(int(each.argmax()), each.shape[1])
                return int(self.rows[row]), col, float(weights[row, col])
        return int(self.rows[0]), 0, 0.0


def _entropy(p: Float[Tensor, "*n S"]) -> Float[Tensor, "*n"]:
    return torch.special.entr(p).sum(-1)


def _worths(trace: Trace, text: str, tokens: Sequence[str]) -> Float[Tensor, " n"]:
    words = trace.run.texts.get(text)
    is_read = words is not None and bool(words.labels)
    return torch.tensor([_worth(token) if is_read else 1.0 for token in tokens])


def _worth(token: str) -> float:
    """How much a token counts as a word: 0 for punctuation and special tokens, 1 for a long word.

    >>> [_worth(token) for token in ("␣cat", "猫", ".", "</s>", "[MASK]")]
    [0.75, 0.5, 0.0, 0.0, 0.0]
    """
    bare = token.strip("␣▁Ġ ").removeprefix("##")
    if len(bare) > 2 and bare[0] + bare[-1] in ("<>", "[]", "()", "||"):
        return 0.0
    widths = (2 if unicodedata.east_asian_width(c) == "W" else 1 for c in bare if c.isalnum())
    return min(1.0, sum(islice(widths, _FULL)) / _FULL)  # further letters change nothing
