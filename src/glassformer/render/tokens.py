"""The token labels of the rows and columns of a site.

A generating model reads a token and chooses the next one: the row "Le" is the attention with which
it writes "chat". Such a row is labelled with both, "Le → chat".
"""

import re
from collections.abc import Sequence

import torch

from glassformer.languages import Language
from glassformer.render.marks import visible_token
from glassformer.tracing import Site, Trace

ARROW = " → "
_PARTS = re.compile(r"(, chosen rows)?(, some rows of .*)?$")  # suffixes of text names
_BY_PLACE = re.compile(r"(, (\d+ × \d+ )?by place)$")  # a text whose tokens are unknown
_CHECKED = 64  # evenly spaced rows on which to check for causality


def token_names(trace: Trace, site: Site, sequence: int = 0) -> tuple[list[str], list[str]]:
    """A name for each query and each key; their positions if no text was recorded."""
    L, S = site.shape[2:]
    queries, keys = (_names(trace, text, sequence) for text in (site.queries, site.keys))
    # With a cache, the queries are the last L of the S tokens.
    continues = site.rows is None and site.queries == site.keys and len(queries) >= S > L
    first = S - L if continues else 0
    places = range(first, first + L) if site.rows is None else site.rows
    return _fill_names(queries[first:], places), _fill_names(keys, range(S))


def row_labels(
    trace: Trace, site: Site, sequence: int = 0, *, most: int | None = None
) -> list[str]:
    """The label of each row: the token read and, if the model predicts the next token, that token.

    The last row has the token that generation chose next, or none if it is unknown.
    With `most`, each token takes at most that many cells.
    """
    read = token_names(trace, site, sequence)[0]
    following = next_tokens(trace, site, sequence)
    return [
        token if after is None else f"{_short(token, most)}{ARROW}{_short(after, most)}"
        for token, after in zip(read, following, strict=True)
    ]


def next_tokens(trace: Trace, site: Site, sequence: int = 0) -> list[str | None]:
    """For each row the token after the one it reads; None if the site does not predict it, or if it
    is unknown."""
    n = site.shape[2]
    if not predicts_next(trace, site):
        return [None] * n
    text = text_name(site.queries)
    names = _names(trace, text, sequence)
    passed, S = site.n_rows or n, site.shape[3]
    continues = text == text_name(site.keys) and len(names) >= S > passed
    first = S - passed if continues else 0
    places = [first + i for i in (range(n) if site.rows is None else site.rows)]
    words = trace.run.texts[text]
    row = _row(len(words.tokens), sequence)
    last = words.following[row] if row < len(words.following) else None
    after = [*names[1:], last]
    return [after[place] if place < len(after) else None for place in places]


def predicts_next(trace: Trace, site: Site) -> bool:
    """Whether the model predicts the next token of the text that the rows belong to.

    It does if the text is read causally, by this site or by the self-attention beside it.
    """
    text = text_name(site.queries)
    if not _has_tokens(trace, text):
        return False
    own = [s for s in trace if text_name(s.queries) == text and not is_cross(s)]
    if not is_cross(site):
        own = [site]
    causal = [known for s in own if (known := is_causal(s)) is not None]
    return all(causal) if causal else site.name.startswith("decoder.")


def is_causal(site: Site) -> bool | None:
    """Whether no query sees a key after its own position; None if no query has such a key."""
    if "causal" not in site._kept:
        site._kept["causal"] = _is_causal(site)
    return site._kept["causal"]


def _is_causal(site: Site) -> bool | None:
    L, S = site.shape[2:]
    positions = site.query_positions.cpu()
    rows = torch.linspace(0, L - 1, min(L, _CHECKED)).round().long().unique()
    rows = rows[positions[rows] < S - 1]  # rows with keys ahead of them
    if not len(rows):
        return None
    ahead = torch.arange(S) > positions[rows][:, None]
    return not bool((site.allowed(rows=rows).cpu() & ahead).any())


def row_title(trace: Trace, site: Site, language: Language) -> str:
    """The title of the rows: tokens read with the next one, or plain queries."""
    say = language.say
    return say("figure.read.next") if predicts_next(trace, site) else say("figure.query")


def is_cross(site: Site) -> bool:
    """Whether the queries and keys belong to different texts."""
    return site.name.endswith(".cross") or _origin(site.queries) != _origin(site.keys)


def text_name(queries: str) -> str:
    """The name of the text that rows were selected from: `tokens` for `tokens, chosen rows`."""
    return _PARTS.sub("", queries)


def _origin(text: str) -> str:
    """The text itself, whether its tokens are known or only counted, with or without a sink."""
    return _BY_PLACE.sub("", text_name(text)).removeprefix("sink and ")


def _has_tokens(trace: Trace, text: str) -> bool:
    """Whether the tokens of a text are known, and not only their positions."""
    words = trace.run.texts.get(text)
    if words is None:
        return False
    n = words.tokens.shape[1]
    return bool(words.labels) or not bool((words.tokens.cpu() == torch.arange(n)).all())


def _names(trace: Trace, text: str, sequence: int) -> Sequence[str]:
    words = trace.run.texts.get(text)
    if words is None:
        return []
    row = _row(len(words.tokens), sequence)
    if words.labels:
        return words.labels[row] if row < len(words.labels) else []
    return [str(token) for token in words.tokens[row].tolist()] if row < len(words.tokens) else []


def _row(n_sequences: int, sequence: int) -> int:
    return 0 if n_sequences == 1 else sequence  # one text may be shared by a whole batch


def _fill_names(names: Sequence[str], places: Sequence[int]) -> list[str]:
    return [names[i] if i < len(names) else str(place) for i, place in enumerate(places)]


def _short(token: str, most: int | None) -> str:
    return token if most is None else visible_token(token, most)
