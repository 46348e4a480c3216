"""Train a tokenizer on a text, with the special tokens that a task needs.

around     what `encode` gives for a text            made for
none       text                                      a language model of one long text
begin      <s> text                                  a language model of documents
end        text </s>                                 a translator: <s> starts its output
both       <s> text </s>                             an encoder like RoBERTa
class      [CLS] text [SEP]                          an encoder like BERT
"""

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from glassformer.errors import ConfigError
from glassformer.text.special_tokens import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer
from glassformer.text.vocabularies import KINDS, VocabularyRequest

Kind = Literal["byte-bpe", "bpe", "wordpiece", "characters", "words"]
Around = Literal["none", "begin", "end", "both", "class"]
Role = Literal["pad", "begin", "end", "mask"]

_PIECES = {"pad": "<pad>", "begin": "<s>", "end": "</s>", "unknown": "<unk>", "mask": "<mask>"}
_CLASS_PIECES = {
    "pad": "[PAD]",
    "begin": "[CLS]",
    "end": "[SEP]",
    "unknown": "[UNK]",
    "mask": "[MASK]",
}
_NEEDED: dict[str, set[str]] = {
    "none": set(),
    "begin": {"pad", "begin", "end"},
    "end": {"pad", "begin", "end"},
    "both": {"pad", "begin", "end"},
    "class": {"pad", "begin", "end", "mask"},
}
_TEMPLATES = {"begin": ("begin", "$A"), "end": ("$A", "end")}
_TEMPLATES |= {"both": ("begin", "$A", "end"), "class": ("begin", "$A", "end")}
_WITH_UNKNOWN = ("wordpiece", "words")  # the others can encode all of their training text


def learn_tokenizer(
    lines: Iterable[str],
    kind: Kind,
    vocab_size: int | None = None,
    *,
    around: Around = "none",
    roles: Sequence[Role] = (),
    extra: Sequence[str] = (),
    lowercase: bool = False,
    min_count: int = 1,
    continued: str = "",
) -> tuple[JsonTokenizer, SpecialTokens]:
    """Train a tokenizer on the lines; returns it with its special tokens.

    `roles` are special tokens beyond those that `around` needs; `extra` are more special pieces,
    such as <zh>. `continued` is the suffix of a subword that is continued ("words" only).

    >>> tokenizer, special = learn_tokenizer(["to be", "or not"], "words", around="end")
    >>> tokenizer.encode("to be or be"), special.end, special.start
    ([7, 4, 6, 4, 2], (2,), (1,))
    """
    _check(kind, around, roles, extra, min_count, continued)
    names = _CLASS_PIECES if around == "class" else _PIECES
    wanted = _NEEDED[around] | set(roles) | ({"unknown"} if kind in _WITH_UNKNOWN else set())
    pieces = {role: piece for role, piece in names.items() if role in wanted}
    backend = KINDS[kind](
        lines,
        VocabularyRequest(
            special=(*pieces.values(), *extra),
            vocab_size=vocab_size,
            lowercase=lowercase,
            min_count=min_count,
            unknown=names["unknown"],
            continued=continued,
        ),
    )
    ids = {role: backend.token_to_id(piece) for role, piece in pieces.items()}
    if around in _TEMPLATES:
        from tokenizers import processors

        single = " ".join(names.get(part, part) for part in _TEMPLATES[around])
        second = "$B" if around == "begin" else f"$B {names['end']}"
        backend.post_processor = processors.TemplateProcessing(
            single=single,
            pair=f"{single} {second}",
            special_tokens=[(names[role], ids[role]) for role in ("begin", "end")],
        )
    return JsonTokenizer(backend), _special(ids, around)


def _special(ids: dict[str, int], around: str) -> SpecialTokens:
    unwritten = tuple(ids[r] for r in ("pad", "begin", "unknown", "mask") if r in ids)
    marks_text = around != "class"  # [CLS] and [SEP] do not begin or end generated text
    return SpecialTokens(
        begin=ids.get("begin") if marks_text else None,
        end=(ids["end"],) if marks_text and "end" in ids else (),
        pad=ids.get("pad"),
        mask=ids.get("mask"),
        start=(ids["begin"],) if around == "end" else (),
        never=unwritten,
    )


def _check(
    kind: str,
    around: str,
    roles: Sequence[str],
    extra: Sequence[str],
    min_count: int,
    continued: str,
) -> None:
    for name, value, allowed in (
        ("kind", kind, get_args(Kind)),
        ("around", around, get_args(Around)),
        *(("roles", role, get_args(Role)) for role in roles),
    ):
        if value not in allowed:
            raise ConfigError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")
    if min_count < 1:
        raise ConfigError(f"min_count must be at least 1; got {min_count}.")
    if continued and kind != "words":
        raise ConfigError(f"continued={continued!r} applies only to the kind words; got {kind!r}.")
    taken = {*_PIECES.values(), *_CLASS_PIECES.values()}
    doubled = [p for p in extra if not p.strip() or p in taken or list(extra).count(p) > 1]
    if doubled:
        raise ConfigError(
            f"Extra pieces must be different from each other and from {' '.join(sorted(taken))}; "
            f"got {doubled[0]!r}."
        )
