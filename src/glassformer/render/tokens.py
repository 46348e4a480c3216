"""The tokens beside the rows and above the columns of a site.

A model that writes reads a token and chooses the next one: row "Le" of its attention is what it
looks at while it writes "chat". Such rows are named by both, "Le → chat".
"""

import re
from collections.abc import Sequence

import torch

from glassformer.languages import Language
from glassformer.render.marks import shown
from glassformer.tracing import Site, Trace

ARROW = " → "
_PARTS = re.compile(r"(, chosen rows)?(, some rows of .*)?$")  # of a text, in the names of texts
_BY_PLACE = re.compile(r"(, (\d+ × \d+ )?by place)$")  # a text whose tokens are not known
_CHECKED = 64  # rows, evenly spaced, that tell whether attention is causal


def names_of(trace: Trace, site: Site, sequence: int = 0) -> tuple[list[str], list[str]]:
    """One name for each query and each key; their places where nobody recorded a text."""
    L, S = site.shape[2:]
    queries, keys = (_names(trace, text, sequence) for text in (site.queries, site.keys))
    # Queries that continue a cache are the last L of the S tokens.
    continues = site.rows is None and site.queries == site.keys and len(queries) >= S > L
    first = S - L if continues else 0
    places = range(first, first + L) if site.rows is None else site.rows
    return _filled(queries[first:], places), _filled(keys, range(S))


def row_labels(
    trace: Trace, site: Site, sequence: int = 0, *, most: int | None = None
) -> list[str]:
    """What stands beside each row: the token that is read and, where the model writes, the next.

    The last row has the token that generation chose after it, or none where that is not known.
    With `most`, each token takes at most so many cells.
    """
    read = names_of(trace, site, sequence)[0]
    following = next_tokens(trace, site, sequence)
    return [
        token if after is None else f"{_short(token, most)}{ARROW}{_short(after, most)}"
        for token, after in zip(read, following, strict=True)
    ]


def next_tokens(trace: Trace, site: Site, sequence: int = 0) -> list[str | None]:
    """For each row the token that comes after the one it reads; None where the site does not
    predict it, or where it is not known."""
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

    So it does where that text is read causally: by this site, or by the self-attention beside it.
    """
    text = text_name(site.queries)
    if not _has_tokens(trace, text):
        return False
    own = [s for s in trace if text_name(s.queries) == text and not crosses(s)]
    if not crosses(site):
        own = [site]
    causal = [known for s in own if (known := is_causal(s)) is not None]
    return all(causal) if causal else site.name.startswith("decoder.")


def is_causal(site: Site) -> bool | None:
    """Whether no query sees a key after its own place; None where one could not tell."""
    if "causal" not in site._kept:
        site._kept["causal"] = _is_causal(site)
    return site._kept["causal"]


def _is_causal(site: Site) -> bool | None:
    L, S = site.shape[2:]
    stands = site.stands.cpu()
    rows = torch.linspace(0, L - 1, min(L, _CHECKED)).round().long().unique()
    rows = rows[stands[rows] < S - 1]  # there is something ahead
    if not len(rows):
        return None
    ahead = torch.arange(S) > stands[rows][:, None]
    return not bool((site.allowed(rows=rows).cpu() & ahead).any())


def row_title(trace: Trace, site: Site, language: Language) -> str:
    """What the rows are: tokens that are read, the next one beside them, or plain queries."""
    say = language.say
    return say("figure.read.next") if predicts_next(trace, site) else say("figure.query")


def crosses(site: Site) -> bool:
    """Whether the queries are of one text and the keys of another."""
    return site.name.endswith(".cross") or _origin(site.queries) != _origin(site.keys)


def text_name(queries: str) -> str:
    """The text of which rows were chosen: `tokens` for `tokens, chosen rows`."""
    return _PARTS.sub("", queries)


def _origin(text: str) -> str:
    """Whose tokens these are, whether they are known or counted, with a sink before them or not."""
    return _BY_PLACE.sub("", text_name(text)).removeprefix("sink and ")


def _has_tokens(trace: Trace, text: str) -> bool:
    """Whether the tokens of a text are known, and not only their places."""
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
    return 0 if n_sequences == 1 else sequence  # one text may serve a whole batch


def _filled(names: Sequence[str], places: Sequence[int]) -> list[str]:
    return [names[i] if i < len(names) else str(place) for i, place in enumerate(places)]


def _short(token: str, most: int | None) -> str:
    return token if most is None else shown(token, most)
