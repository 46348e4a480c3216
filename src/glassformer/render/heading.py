"""The heading of every picture: the model and the text."""

import unicodedata
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from glassformer.languages import Language
from glassformer.render.marks import visible_token
from glassformer.render.tokens import text_name
from glassformer.tracing import Site, Trace

_MOST = 60  # characters of a text
_ENDS = "…"  # a token that completes the previous character


def heading(trace: Trace, site: Site, language: Language, *, sequence: int = 0) -> str:
    """The model and the texts of a site; whatever is unknown is left out.

    translator: “The cat sat on the mat.” → “Le chat s'assit sur le tapis.”
    """
    names = dict.fromkeys(text_name(text) for text in (site.keys, site.queries))
    if len(names) == 1 and "source" in trace.run.texts and "tokens" in names:
        names = dict.fromkeys(("source", "tokens"))  # both texts of a translation
    found = [_escape(shorten(text)) for name in names if (text := sentence(trace, name, sequence))]
    quoted = [f"“{text}”" for text in dict.fromkeys(found)]
    model = model_name(trace)
    parts = [part for part in (model, " → ".join(quoted)) if part]
    return language.say("list.colon").join(parts)


def _escape(text: str) -> str:
    """Escape control characters, so that a text cannot control the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def model_name(trace: Trace) -> str:
    """The name the model was loaded by, else its type; empty if unknown."""
    return name_model(trace.model)


def name_model(model: dict[str, Any]) -> str:
    """The name of a model, from what a trace says of it."""
    config = model.get("config")
    config = config if isinstance(config, dict) else {}
    for given in (model.get("name"), config.get("_name_or_path")):
        if isinstance(given, str) and given.strip():
            path = PurePath(given)  # the folder's name only: its location is private
            return visible_token(
                path.name if path.is_absolute() or given[0] in "~." else given, _MOST
            )
    kinds: list[Any] = [config.get("model_type"), config.get("family")]
    return next(
        (visible_token(kind, _MOST) for kind in kinds if isinstance(kind, str) and kind), ""
    )


def sentence(trace: Trace, text: str, sequence: int = 0) -> str:
    """The text of the tokens, without special ones; empty if their labels are unknown.

    A batch of several sequences may share one text.
    """
    words = trace.run.texts.get(text)
    if words is None or not words.labels:
        return ""
    row = 0 if len(words.labels) == 1 else sequence
    return join_labels(words.labels[row]) if row < len(words.labels) else ""


def join_labels(labels: Sequence[str]) -> str:
    """Join token labels into running text.

    >>> join_labels(["<s>", "The", "␣cat", ".", "</s>"]), join_labels(["[CLS]", "un", "##til", "."])
    ('The cat.', 'until.')
    """
    plain = [label for label in labels if not is_special(label) and label != _ENDS]
    if any("␣" in label for label in plain) or all(len(label) == 1 for label in plain):
        return " ".join("".join(plain).replace("␣", " ").replace("⏎", " ").split())
    text = ""
    for label in plain:  # words without spaces: WordPiece
        glued = label.startswith("##") or not (label[0].isalnum() and text[-1:].isalnum())
        glued = glued or _is_wide(label[0]) or _is_wide(text[-1:])
        spaced = glued and not label.startswith("##") and text[-1:] in tuple(".,;:!?")
        text += (" " if not glued or spaced else "") + label.removeprefix("##")
    return text.strip()


def is_special(label: str) -> bool:
    """Whether a token is a special token: <s>, [CLS], <|end|>, (sink)."""
    return (len(label) > 2 and label[0] + label[-1] in ("<>", "[]")) or label == "(sink)"


def shorten(text: str, most: int = _MOST) -> str:
    """Shorten a long text by leaving out its middle, at word boundaries if there are any.

    >>> shorten("once upon a time there was a princess", 24)
    'once upon … princess'
    """
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    start, end = text[:half], text[len(text) - half :]
    start = start.rpartition(" ")[0] or start
    end = end.partition(" ")[2] or end
    return f"{start} … {end}"


def _is_wide(character: str) -> bool:
    return bool(character) and unicodedata.east_asian_width(character) in "WF"
