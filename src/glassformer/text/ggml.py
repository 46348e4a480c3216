"""The tokenizer in the header of a GGUF file; `ggml_export` writes one.

Two kinds: "gpt2" has byte-level pieces, their merges, and the name of a pre-tokenizer; "llama" has
pieces with scores, and the adjacent pair with the best score is merged first. "none" is a model
without a tokenizer.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.settings import quote
from glassformer.text.special_tokens import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer
from glassformer.text.tokenizer_file import check_pieces, library_errors

# How text is split before merging: the regular expressions that the models were trained with.
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
    """Build the tokenizer that the header's fields describe; None for a model without one."""
    header = _Header(fields, where)
    makers = {"gpt2": _build_byte_level, "llama": _build_scored}
    kind, pieces = header.read_string("model"), header.read_strings("tokens")
    if kind == "none":
        return None, _read_roles(header)
    if kind not in makers or not pieces:
        raise CheckpointError(
            f"The tokenizer of a GGUF file must be one of {', '.join(makers)}, with its tokens; "
            f"that of {where} is {kind!r}."
        )
    check_pieces(pieces, where)
    types = header.read_numbers("token_type", len(pieces)) or [NORMAL] * len(pieces)
    # Vocabularies are filled up to the rows of the embedding with pieces that no text has.
    vocabulary = {piece: i for i, piece in enumerate(pieces) if types[i] != UNUSED}
    special = _read_roles(header)
    with library_errors(f"The tokenizer of {where} cannot be built"):
        backend = makers[kind](header, vocabulary)
        _add_tokens(backend, pieces, types)
        if header.read_flag("add_bos_token", default=False) and special.begin is not None:
            _prepend_token(backend, pieces[special.begin], special.begin)
    template = fields.get("tokenizer.chat_template")
    tokenizer = JsonTokenizer(backend, chat_template=template if type(template) is str else None)
    return tokenizer, special


def _read_roles(header: "_Header") -> SpecialTokens:
    ends = [token for name in ENDS if (token := header.read_token(name)) is not None]
    roles: dict[str, Any] = {role: header.read_token(name) for role, name in ROLES.items()}
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
    """The tokenizer's fields, with checks of their types."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        self._fields, self._where = fields, where

    def read_string(self, name: str) -> str | None:
        return self._get(name, lambda value: isinstance(value, str))

    def read_flag(self, name: str, *, default: bool) -> bool:
        value = self._get(name, lambda value: isinstance(value, bool))
        return default if value is None else value

    def read_strings(self, name: str) -> list[str]:
        return (
            self._get(name, lambda v: isinstance(v, list) and all(type(x) is str for x in v)) or []
        )

    def read_numbers(self, name: str, count: int) -> list[Any]:
        """A list of `count` numbers, or an empty one."""

        def fits(value: Any) -> bool:
            is_list = isinstance(value, list) and len(value) == count
            return is_list and all(type(x) in (int, float) and math.isfinite(x) for x in value)

        return self._get(name, fits) or []

    def read_token(self, name: str) -> int | None:
        return self._get(name, self._is_token)

    def own_tokens(self, name: str) -> tuple[int, ...]:
        """Tokens in a field of glassformer's own."""
        found = self._get(
            name, lambda v: isinstance(v, list) and all(map(self._is_token, v)), prefix=""
        )
        return tuple(found or ())

    def _is_token(self, value: Any) -> bool:
        most = len(self.read_strings("tokens")) or 2**31  # without a tokenizer, the model decides
        return type(value) is int and 0 <= value < most

    def _get(
        self, name: str, fits: Callable[[Any], bool], *, prefix: str = "tokenizer.ggml."
    ) -> Any:
        value = self._fields.get(prefix + name)
        if value is not None and not fits(value):
            raise CheckpointError(
                f"{prefix}{name} in {self._where} must match its tokenizer; it is {quote(value)}."
            )
        return value


def _build_byte_level(header: _Header, vocabulary: dict[str, int]) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers

    split = header.read_string("pre") or "gpt-2"
    if split not in SPLITS:
        raise CheckpointError(
            f"The pre-tokenizer of a GGUF file must be one of {', '.join(SPLITS)}; it is {split!r}."
        )
    merges: Any = [tuple(pair.split(" ", 1)) for pair in header.read_strings("merges")]
    ignoring = split == "llama-bpe"  # words in the vocabulary need no merges
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


def _build_scored(header: _Header, vocabulary: dict[str, int]) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers

    pieces = header.read_strings("tokens")
    scores = header.read_numbers("scores", len(pieces))
    if not scores:
        raise CheckpointError("A GGUF file with a llama tokenizer must have one score per token.")
    unknown = header.read_token("unknown_token_id")
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
    if header.read_flag("add_space_prefix", default=True):
        spaces.insert(0, normalizers.Prepend("▁"))
        back.append(decoders.Strip(" ", 1, 0))
    backend.normalizer = normalizers.Sequence(spaces)
    backend.decoder = decoders.Sequence(back)
    return backend


def ordered_merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Every pair of pieces that forms a piece, best score first."""
    found = [
        (-scores[token], vocabulary[piece[:cut]], vocabulary[piece[cut:]], piece[:cut], piece[cut:])
        for piece, token in vocabulary.items()
        for cut in range(1, len(piece))  # a piece has at most MOST_PIECE letters
        if piece[:cut] in vocabulary and piece[cut:] in vocabulary
    ]
    return [(left, right) for _, _, _, left, right in sorted(found)]


def _prepend_token(backend: Any, piece: str, token: int) -> None:
    from tokenizers import processors

    backend.post_processor = processors.TemplateProcessing(
        single=f"{piece}:0 $A:0",
        pair=f"{piece}:0 $A:0 {piece}:1 $B:1",
        special_tokens=[(piece, token)],
    )
