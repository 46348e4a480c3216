"""The roles of heads on a traced text, with what the text says about its tokens."""

from collections.abc import Callable, Collection

from glassformer.analysis.head_roles import Role, roles
from glassformer.render.tokens import is_cross
from glassformer.tracing import Site, Trace


def find_roles(
    trace: Trace,
    site: Site,
    sequence: int,
    *,
    delimiters: Collection[int] | None = None,
    report: Callable[[float], None] | None = None,
) -> list[Role | None]:
    """The role of each head; None for cross-attention, which has none of these.

    `delimiters` are those of the keys where they are known already.
    """
    if is_cross(site):
        return [None] * site.n_heads
    words = trace.run.texts.get(site.keys)
    known = words is not None and sequence < len(words.tokens)
    tokens = words.tokens[sequence] if words is not None and known else None
    if delimiters is None:
        delimiters = find_delimiters(trace, site.keys, sequence) if known else ()
    return list(roles(site, tokens, delimiters=delimiters, sequence=sequence, report=report))


def find_delimiters(trace: Trace, text: str, sequence: int) -> set[int]:
    """Ids of punctuation and special tokens in a text."""
    words = trace.run.texts.get(text)
    if words is None or not words.labels:
        return set()
    marks = {".", ",", ";", ":", "!", "?", "。", "，", "、", "；", "：", "！", "？"}
    special = ("[", "<")
    tokens = words.tokens[sequence].tolist()  # element by element, a tensor of 131,072 takes 0.3 s
    return {
        token
        for token, shown in zip(tokens, words.labels[sequence], strict=True)
        if shown.strip("␣") in marks or (shown.startswith(special) and shown.endswith(("]", ">")))
    }
