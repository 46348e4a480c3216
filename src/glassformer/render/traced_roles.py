"""The roles of heads on a traced text, with what the text says about its tokens."""

from glassformer.analysis.head_roles import Role, roles
from glassformer.render.tokens import is_cross
from glassformer.tracing import Site, Trace


def find_roles(trace: Trace, site: Site, sequence: int) -> list[Role | None]:
    """The role of each head; None for cross-attention, which has none of these."""
    if is_cross(site):
        return [None] * site.n_heads
    words = trace.run.texts.get(site.keys)
    known = words is not None and sequence < len(words.tokens)
    tokens = words.tokens[sequence] if words is not None and known else None
    delimiters = _delimiters(trace, site.keys, sequence) if known else set()
    return list(roles(site, tokens, delimiters=delimiters, sequence=sequence))


def _delimiters(trace: Trace, text: str, sequence: int) -> set[int]:
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
