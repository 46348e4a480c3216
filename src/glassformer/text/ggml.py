"""The tokenizer in the header of a GGUF file; `ggml_export` writes one.

Two kinds: "gpt2" lists byte-level pieces and their merges, and names how text is split before;
"llama" lists pieces with scores, where the best-scored pair of neighbours is merged first. "none"
is a model without a tokenizer.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.settings import quote
from glassformer.text.special_tokens import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer
from glassformer.text.tokenizer_file import check_pieces, library_errors

# How text is cut before merging; the regular expressions are those the models were trained with.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}NUMBERS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {
    "gpt-2": None,
    "smollm": None,
    "llama-bpe": _WORDS.replace("NUMBERS", "{1,3}"),
    "qwen2": _WORDS.replace("NUMBERS", ""),
}
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # tokenizer.ggml.token_type
# The fields of the special tokens, by role; any of the last three ends a text.
ROLES = {"begin": "bos_token_id", "pad": "padding_token_id", "mask": "mask_token_id"}
ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")
OWN_ROLES = {"start": "glassformer.start_token_ids", "never": "glassformer.never_token_ids"}


def tokenizer_of_header(
    fields: Mapping[str, Any], where: str = "the GGUF file"
) -> tuple[Tokenizer | None, SpecialTokens]:
    """What the header's fields describe; None where it says that there is no tokenizer."""
    header = _Header(fields, where)
    makers = {"gpt2": _byte_level, "llama": _scored}
    kind, pieces = header.word("model"), header.texts("tokens")
    if kind == "none":
        return None, _read_roles(header)
    if kind not in makers or not pieces:
        raise CheckpointError(
            f"The tokenizer of a GGUF file must be one of {', '.join(makers)}, with its tokens; "
            f"that of {where} is {kind!r}."
        )
    check_pieces(pieces, where)
    types = header.numbers("token_type", len(pieces)) or [NORMAL] * len(pieces)
    # Vocabularies are filled up to the rows of the embedding with pieces that no text has.
    vocabulary = {piece: i for i, piece in enumerate(pieces) if types[i] != UNUSED}
    special = _read_roles(header)
    with library_errors(f"The tokenizer of {where} cannot be built"):
        backend = makers[kind](header, vocabulary)
        _add_tokens(backend, pieces, types)
        if header.flag("add_bos_token", default=False) and special.begin is not None:
            _put_before(backend, pieces[special.begin], special.begin)
    template = fields.get("tokenizer.chat_template")
    tokenizer = JsonTokenizer(backend, chat_template=template if type(template) is str else None)
    return tokenizer, special


def _read_roles(header: "_Header") -> SpecialTokens:
    ends = [token for name in ENDS if (token := header.token(name)) is not None]
    roles: dict[str, Any] = {role: header.token(name) for role, name in ROLES.items()}
    roles |= {role: header.own_tokens(name) for role, name in OWN_ROLES.items()}
    return SpecialTokens(**roles, end=tuple(dict.fromkeys(ends)))


def _add_tokens(backend: Any, pieces: list[str], types: list[int]) -> None:
    """Pieces that are found in a text before it is split; special ones are left out of answers."""
    from tokenizers import AddedToken

    backend.add_tokens(
        [
            AddedToken(piece, special=kind == CONTROL, normalized=False)
            for piece, kind in zip(pieces, types, strict=True)
            if kind in (CONTROL, USER)
        ]
    )


class _Header:
    """The fields about the tokenizer, each of the type that it must have."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        self._fields, self._where = fields, where

    def word(self, name: str) -> str | None:
        return self._get(name, lambda value: isinstance(value, str))

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._get(name, lambda value: isinstance(value, bool))
        return default if value is None else value

    def texts(self, name: str) -> list[str]:
        return (
            self._get(name, lambda v: isinstance(v, list) and all(type(x) is str for x in v)) or []
        )

    def numbers(self, name: str, count: int) -> list[Any]:
        """As many numbers as there are tokens, or none."""

        def fits(value: Any) -> bool:
            is_list = isinstance(value, list) and len(value) == count
            return is_list and all(type(x) in (int, float) and math.isfinite(x) for x in value)

        return self._get(name, fits) or []

    def token(self, name: str) -> int | None:
        return self._get(name, self._is_token)

    def own_tokens(self, name: str) -> tuple[int, ...]:
        """Tokens in a field of glassformer's own."""
        found = self._get(
            name, lambda v: isinstance(v, list) and all(map(self._is_token, v)), prefix=""
        )
        return tuple(found or ())

    def _is_token(self, value: Any) -> bool:
        most = len(self.texts("tokens")) or 2**31  # without a tokenizer the model has the limit
        return type(value) is int and 0 <= value < most

    def _get(
        self, name: str, fits: Callable[[Any], bool], *, prefix: str = "tokenizer.ggml."
    ) -> Any:
        value = self._fields.get(prefix + name)
        if value is not None and not fits(value):
            raise CheckpointError(
                f"{prefix}{name} in {self._where} must fit its tokenizer; it is {quote(value)}."
            )
        return value


def _byte_level(header: _Header, vocabulary: dict[str, int]) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers

    split = header.word("pre") or "gpt-2"
    if split not in SPLITS:
        raise CheckpointError(
            f"A GGUF file's text must be split as in {', '.join(SPLITS)}; this one says {split!r}."
        )
    merges: Any = [tuple(pair.split(" ", 1)) for pair in header.texts("merges")]
    ignoring = split == "llama-bpe"  # a word of the vocabulary needs no merges
    backend = Backend(models.BPE(vocabulary, merges, ignore_merges=ignoring))
    if split == "qwen2":
        backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = build_splitter(split)
    backend.decoder = decoders.ByteLevel()
    return backend


def build_splitter(split: str) -> Any:
    """What cuts a text before its bytes are merged, by the name that GGUF has for it."""
    from tokenizers import Regex, pre_tokenizers

    pattern = SPLITS[split]
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    if pattern is not None:
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), "isolated"))
    if split == "smollm":
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    return pre_tokenizers.Sequence(steps)


def _scored(header: _Header, vocabulary: dict[str, int]) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers

    pieces = header.texts("tokens")
    scores = header.numbers("scores", len(pieces))
    if not scores:
        raise CheckpointError("A GGUF file with a llama tokenizer must have a score per token.")
    unknown = header.token("unknown_token_id")
    backend = Backend(
        models.BPE(
            vocabulary,
            ordered_merges(vocabulary, scores),
            unk_token=None if unknown is None else pieces[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaces: list[Any] = [normalizers.Replace(" ", "▁")]
    back: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if header.flag("add_space_prefix", default=True):
        spaces.insert(0, normalizers.Prepend("▁"))
        back.append(decoders.Strip(" ", 1, 0))
    backend.normalizer = normalizers.Sequence(spaces)
    backend.decoder = decoders.Sequence(back)
    return backend


def ordered_merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Every pair of pieces that makes a piece, the best-scored first."""
    found = [
        (-scores[token], vocabulary[piece[:cut]], vocabulary[piece[cut:]], piece[:cut], piece[cut:])
        for piece, token in vocabulary.items()
        for cut in range(1, len(piece))  # a piece has at most MOST_PIECE letters
        if piece[:cut] in vocabulary and piece[cut:] in vocabulary
    ]
    return [(left, right) for _, _, _, left, right in sorted(found)]


def _put_before(backend: Any, piece: str, token: int) -> None:
    from tokenizers import processors

    backend.post_processor = processors.TemplateProcessing(
        single=f"{piece}:0 $A:0",
        pair=f"{piece}:0 $A:0 {piece}:1 $B:1",
        special_tokens=[(piece, token)],
    )
