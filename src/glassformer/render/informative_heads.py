"""What to open on: the head whose keys depend most on the query, and its clearest pair of words.

How telling a head is, is the mutual information of its queries and keys, in nats:

    I = H(mean of the rows) − mean of H(row)

It is 0 for even attention, and 0 for a head that always looks at the same key, however sharply.
Only rows and keys that are words count. All else, marks, special tokens, the first key, the token
itself and its neighbours, is one key together: attention that rests there tells nothing.
"""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.render.tokens import crosses, names_of, next_tokens
from glassformer.tracing import Site, Trace

_MOST_ROWS = 128
_MOST_CELLS = 1 << 23  # of all heads of a site
_NEAR = 1  # tokens on either side that a word's own attention is not counted on
_FULL = 4  # letters of a word that surely carries meaning; "the" and "le" count for less


class Telling(NamedTuple):
    """A site, one of its heads, and the cell to begin with."""

    site: Site
    head: int
    row: int
    col: int


def most_telling(
    trace: Trace, sites: Sequence[Site], *, head: int | None = None, sequence: int = 0
) -> Telling:
    """The most telling head of these sites, or the site where `head` is, and its clearest cell."""
    found: list[tuple[float, float, Telling]] = []
    for site in sites:
        looked = _Looked(trace, site, sequence)
        values = looked.information().tolist()
        for i, (number, value) in enumerate(zip(site.head_numbers, values, strict=True)):
            if head is None or number == head:
                row, col, weight = looked.clearest(i)
                found.append((round(value, 6), weight, Telling(site, number, row, col)))
    # The clearest cell decides where a text is too short for more: one word has no information.
    return max(found, key=lambda each: each[:2])[2]


class _Looked:
    """The rows of a site that are looked at, and what each row and key counts for."""

    def __init__(self, trace: Trace, site: Site, sequence: int) -> None:
        _, H, L, S = site.shape
        read, keys = names_of(trace, site, sequence)
        # A row is about the word it writes, where it writes one.
        following = next_tokens(trace, site, sequence)
        about = [after or word for word, after in zip(read, following, strict=True)]
        worth = _worths(trace, site.queries, about)
        self.col_worth = _worths(trace, site.keys, keys)
        choosing = site.visible(sequence=sequence).amax(0).cpu() > 1  # a single key is no choice
        wanted = (choosing & (worth > 0), choosing, torch.ones(L, dtype=torch.bool))
        rows = next(some for some in wanted if bool(some.any())).nonzero()[:, 0]
        n = max(1, min(len(rows), _MOST_ROWS, _MOST_CELLS // max(1, H * S)))
        self.rows = rows[torch.linspace(0, len(rows) - 1, n).round().long()]
        self.row_worth = worth[self.rows]
        self.weights = site.weights(rows=self.rows, sequence=sequence).float().cpu()  # H R S
        self.counts = self._counts(site)

    def _counts(self, site: Site) -> Bool[Tensor, "R S"]:
        """The cells that tell something."""
        S = site.shape[3]
        counts = (self.col_worth > 0).expand(len(self.rows), S).clone()
        if not crosses(site):
            away = (torch.arange(S) - site.stands.cpu()[self.rows][:, None]).abs()
            counts &= away > _NEAR
            if S > 2 * _NEAR + 2:
                counts[:, 0] = False  # many heads rest there
        return counts

    def information(self) -> Float[Tensor, " H"]:
        told = self.weights * self.counts
        rest = (self.weights.sum(-1) - told.sum(-1)).clamp(min=0)[..., None]
        rows = torch.cat([told, rest], -1)
        return (_entropy(rows.mean(1)) - _entropy(rows).mean(-1)).clamp(min=0)

    def clearest(self, head: int) -> tuple[int, int, float]:
        """The largest weight between two words; between any two tokens, where there are none."""
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
    """How much a token counts as a word: 0 for marks and special tokens, 1 for a long word.

    >>> [_worth(token) for token in ("␣cat", "猫", ".", "</s>", "[MASK]")]
    [0.75, 0.5, 0.0, 0.0, 0.0]
    """
    bare = token.strip("␣▁Ġ ").removeprefix("##")
    if len(bare) > 2 and bare[0] + bare[-1] in ("<>", "[]", "()", "||"):
        return 0.0
    letters = sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in bare if c.isalnum())
    return min(1.0, letters / _FULL)
