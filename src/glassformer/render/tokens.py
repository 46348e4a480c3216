"""The tokens beside the rows and above the columns of a site."""

from collections.abc import Sequence

from glassformer.observe import Site, Trace


def names_of(trace: Trace, site: Site, sequence: int = 0) -> tuple[list[str], list[str]]:
    """One name for each query and each key; their places where nobody recorded a text."""
    L, S = site.shape[2:]
    queries, keys = (_names(trace, text, sequence) for text in (site.queries, site.keys))
    # Queries that continue a cache are the last L of the S tokens.
    continues = site.rows is None and site.queries == site.keys and len(queries) >= S > L
    first = S - L if continues else 0
    places = range(first, first + L) if site.rows is None else site.rows
    return _filled(queries[first:], places), _filled(keys, range(S))


def crosses(site: Site) -> bool:
    """Whether the queries are of one text and the keys of another."""
    return site.name.endswith(".cross") or (site.rows is None and site.queries != site.keys)


def _names(trace: Trace, text: str, sequence: int) -> Sequence[str]:
    words = trace.run.texts.get(text)
    if words is None:
        return []
    row = 0 if len(words.tokens) == 1 else sequence  # one text may serve a whole batch
    if words.labels:
        return words.labels[row] if row < len(words.labels) else []
    return [str(token) for token in words.tokens[row].tolist()] if row < len(words.tokens) else []


def _filled(names: Sequence[str], places: Sequence[int]) -> list[str]:
    return [names[i] if i < len(names) else str(place) for i, place in enumerate(places)]
