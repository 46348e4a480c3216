"""The tokenizer in the header of a GGUF file.

Two kinds: "gpt2" lists byte-level pieces and their merges, and names how text is split before;
"llama" lists pieces with scores, where the best-scored pair of neighbours is merged first.
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
_NORMAL, _CONTROL, _USER, _BYTE = 1, 3, 4, 6  # tokenizer.ggml.token_type


def tokenizer_of_header(
    fields: Mapping[str, Any], where: str = "the GGUF file"
) -> tuple[Tokenizer, SpecialTokens]:
    """What the header's fields describe."""
    header = _Header(fields, where)
    makers = {"gpt2": _byte_level, "llama": _scored}
    kind, pieces = header.word("model"), header.texts("tokens")
    if kind not in makers or not pieces:
        raise CheckpointError(
            f"The tokenizer of a GGUF file must be one of {', '.join(makers)}, with its tokens; "
            f"that of {where} is {kind!r}."
        )
    check_pieces(pieces, where)
    types = header.numbers("token_type", len(pieces)) or [_NORMAL] * len(pieces)
    begin, end = header.token("bos_token_id"), header.token("eos_token_id")
    with library_errors(f"The tokenizer of {where} cannot be built"):
        backend = makers[kind](header, pieces)
        control = [p for p, t in zip(pieces, types, strict=True) if t in (_CONTROL, _USER)]
        backend.add_special_tokens(control)
        if header.flag("add_bos_token", default=False) and begin is not None:
            _put_before(backend, pieces[begin], begin)
    special = SpecialTokens(
        begin=begin, end=() if end is None else (end,), pad=header.token("padding_token_id")
    )
    template = fields.get("tokenizer.chat_template")
    tokenizer = JsonTokenizer(backend, chat_template=template if type(template) is str else None)
    return tokenizer, special


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
        n = len(self.texts("tokens"))
        return self._get(name, lambda value: type(value) is int and 0 <= value < n)

    def _get(self, name: str, fits: Callable[[Any], bool]) -> Any:
        value = self._fields.get(f"tokenizer.ggml.{name}")
        if value is not None and not fits(value):
            raise CheckpointError(
                f"tokenizer.ggml.{name} in {self._where} must fit its tokenizer; it is "
                f"{quote(value)}."
            )
        return value


def _byte_level(header: _Header, pieces: list[str]) -> Any:
    from tokenizers import Regex, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Backend

    split = header.word("pre") or "gpt-2"
    if split not in SPLITS:
        raise CheckpointError(
            f"A GGUF file's text must be split as in {', '.join(SPLITS)}; this one says {split!r}."
        )
    merges: Any = [tuple(pair.split(" ", 1)) for pair in header.texts("merges")]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    ignoring = split in ("llama-bpe", "qwen2")  # a word of the vocabulary needs no merges
    backend = Backend(models.BPE(vocabulary, merges, ignore_merges=ignoring))
    pattern = SPLITS[split]
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    if pattern is not None:
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), "isolated"))
    if split == "smollm":
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
    backend.decoder = decoders.ByteLevel()
    return backend


def _scored(header: _Header, pieces: list[str]) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers

    scores = header.numbers("scores", len(pieces))
    if not scores:
        raise CheckpointError("A GGUF file with a llama tokenizer must have a score per token.")
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    unknown = header.token("unknown_token_id")
    backend = Backend(
        models.BPE(
            vocabulary,
            _merges(vocabulary, scores),
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


def _merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
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
