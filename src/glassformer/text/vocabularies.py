"""Five ways to build a vocabulary from lines of text, all deterministic.

byte-bpe     pairs of bytes, the most frequent merged first (Radford et al. 2019)
bpe          pairs of characters, spaces as ▁, rare characters as bytes (Kudo et al. 2018)
wordpiece    pairs within words, inner pieces as ##… (Devlin et al. 2019)
characters   every character
words        every word of a text that is already split by spaces
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from glassformer.errors import ConfigError, DataError
from glassformer.text.tokenizer_file import library_errors

BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_BLANKS = r"[ \t\r\n]+"
_MOST_WORD = 1000  # characters, in training


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyRequest:
    """The settings of a vocabulary; `special` pieces get the first ids."""

    special: tuple[str, ...]
    vocab_size: int | None
    lowercase: bool
    min_count: int
    unknown: str
    continued: str  # "words": the suffix of a subword that is continued, such as @@

    def room(self, least: int) -> int:
        """The number of ids left for pieces learned from the text; at least one."""
        if self.vocab_size is None:
            raise ConfigError(
                "This kind of tokenizer needs a vocab_size; got None. Try vocab_size=8000."
            )
        room = self.vocab_size - len(self.special) - least
        if room < 1:
            raise ConfigError(
                f"vocab_size must be above {len(self.special) + least}, the pieces that every such "
                f"vocabulary has; got vocab_size={self.vocab_size}."
            )
        return room


def byte_pairs(lines: Iterable[str], request: VocabularyRequest) -> Any:
    from tokenizers import decoders, pre_tokenizers, trainers

    request.room(least=256)
    backend = _pairs_backend(request)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=request.vocab_size or 0,
        min_frequency=request.min_count,
        special_tokens=list(request.special),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    _train(backend, _require_text(lines), trainer)
    return backend


def character_pairs(lines: Iterable[str], request: VocabularyRequest) -> Any:
    from tokenizers import decoders, pre_tokenizers, trainers

    room = request.room(least=len(BYTES))
    backend = _pairs_backend(request)
    # Punctuation and digits are split off, so that a word is the same piece before a comma.
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    with _open_rereadable(_require_text(lines)) as read:
        alphabet = _alphabet(backend, read(), most=max(1, room // 2), before=("▁",))
        trainer = trainers.BpeTrainer(
            vocab_size=request.vocab_size or 0,
            min_frequency=request.min_count,
            special_tokens=[*request.special, *BYTES],
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        _train(backend, read(), trainer)
    return _unmark_special(backend, BYTES, byte_fallback=True)


def word_pieces(lines: Iterable[str], request: VocabularyRequest) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    room = request.room(least=0)
    backend = Backend(models.WordPiece(unk_token=request.unknown))
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=request.lowercase, strip_accents=False
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    with _open_rereadable(_require_text(lines)) as read:
        alphabet = _alphabet(backend, read(), most=max(1, room // 3))
        # The library numbers inner characters in an order that differs from run to run and breaks
        # ties between pairs. Added beforehand, they have a fixed order.
        inner = [f"##{c}" for c in _inner_characters(backend, read()) if c in set(alphabet)]
        trainer = trainers.WordPieceTrainer(
            vocab_size=request.vocab_size or 0,
            min_frequency=request.min_count,
            special_tokens=[*request.special, *inner],
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        _train(backend, read(), trainer)
    return _unmark_special(backend, inner)


def characters(lines: Iterable[str], request: VocabularyRequest) -> Any:
    from tokenizers import Regex, decoders, pre_tokenizers

    if request.vocab_size is not None:
        raise ConfigError(
            f"vocab_size must be None for characters, which all get ids; got {request.vocab_size}."
        )
    found: set[str] = set()
    for line in _require_text(lines):
        found.update(line.lower() if request.lowercase else line)
    backend = _build_word_level(sorted(found), request)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    backend.decoder = decoders.Fuse()
    return backend


def words(lines: Iterable[str], request: VocabularyRequest) -> Any:
    from tokenizers import Regex, decoders, pre_tokenizers

    room = None if request.vocab_size is None else request.room(least=0)
    counted: Counter[str] = Counter()
    for line in _require_text(lines):
        counted.update(re.split(_BLANKS, line.lower() if request.lowercase else line))
    counted.pop("", None)
    often = [word for word, count in counted.items() if count >= request.min_count]
    if not often:
        raise ConfigError(
            f"At least one word must occur min_count={request.min_count} times; none does. "
            "Lower min_count."
        )
    often.sort(key=lambda word: (-counted[word], word))
    backend = _build_word_level(often[:room], request)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(_BLANKS), "removed")
    if request.continued:
        mark = re.escape(request.continued)
        backend.decoder = decoders.Sequence(
            [
                decoders.Replace(Regex(f"(?<!{mark})$"), " "),
                decoders.Replace(Regex(f"{mark}$"), ""),
                decoders.Fuse(),
                decoders.Replace(Regex(" $"), ""),
            ]
        )
    return backend


KINDS: dict[str, Callable[[Iterable[str], VocabularyRequest], Any]] = {
    "byte-bpe": byte_pairs,
    "bpe": character_pairs,
    "wordpiece": word_pieces,
    "characters": characters,
    "words": words,
}


def _train(backend: Any, lines: Iterable[str], trainer: Any) -> None:
    """Train merges on words of at most _MOST_WORD characters; longer ones are split.

    The time per word is quadratic in its length. Only blobs such as base64 have words that long;
    no other text is affected.
    """
    from tokenizers import Regex, pre_tokenizers

    used = backend.pre_tokenizer
    cut = pre_tokenizers.Split(Regex(rf"(?m:.{{1,{_MOST_WORD}}})"), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([used, cut])
    with library_errors("No tokenizer can be trained on this text", DataError):
        backend.train_from_iterator(lines, trainer)
    backend.pre_tokenizer = used


def _pairs_backend(request: VocabularyRequest) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import models, normalizers

    backend = Backend(models.BPE())
    if request.lowercase:
        backend.normalizer = normalizers.Lowercase()
    return backend


def _build_word_level(pieces: list[str], request: VocabularyRequest) -> Any:
    from tokenizers import AddedToken, models, normalizers
    from tokenizers import Tokenizer as Backend

    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys([*request.special, *pieces]))}
    backend = Backend(models.WordLevel(vocabulary, unk_token=request.unknown))
    if request.lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.add_special_tokens([AddedToken(piece, special=True) for piece in request.special])
    return backend


def _alphabet(
    backend: Any, lines: Iterable[str], most: int, before: tuple[str, ...] = ()
) -> list[str]:
    """The `most` most frequent characters; ties go to the lower code point."""
    counted: Counter[str] = Counter()
    for line in lines:
        counted.update(backend.normalizer.normalize_str(line) if backend.normalizer else line)
    found = [c for c in counted if not c.isspace() and c not in before]
    return sorted([*before, *sorted(found, key=lambda c: (-counted[c], c))[:most]])


def _inner_characters(backend: Any, lines: Iterable[str]) -> list[str]:
    """The characters that occur inside a word, after its first."""
    seen: set[str] = set()
    found: set[str] = set()
    for line in lines:
        for part in backend.normalizer.normalize_str(line).split():
            if part not in seen:
                seen.add(part)
                for word, _ in backend.pre_tokenizer.pre_tokenize_str(part):
                    found.update(word[1:])
    return sorted(found)


def _unmark_special(backend: Any, pieces: Iterable[str], **settings: bool) -> Any:
    """The same tokenizer with `pieces` as ordinary pieces: they only needed fixed ids."""
    from tokenizers import Tokenizer as Backend

    plain, hidden = json.loads(backend.to_str()), set(pieces)
    plain["added_tokens"] = [t for t in plain["added_tokens"] if t["content"] not in hidden]
    plain["model"].update(settings)
    return Backend.from_str(json.dumps(plain))


def _require_text(lines: Iterable[str]) -> Iterable[str]:
    """The lines; raises at the end if all were blank."""
    if iter(lines) is not lines:  # keep a re-iterable one re-iterable
        return _NonemptyLines(lines)
    return _reject_empty(lines)


@dataclass(frozen=True, slots=True)
class _NonemptyLines:
    lines: Iterable[str]

    def __iter__(self) -> Iterator[str]:
        return _reject_empty(self.lines)


def _reject_empty(lines: Iterable[str]) -> Iterator[str]:
    empty = True
    for line in lines:
        empty = empty and not line.strip()
        yield line
    if empty:
        raise ConfigError(
            "Training a tokenizer needs at least one word; the text is empty. "
            "Check that the files are the right ones."
        )


@contextmanager
def _open_rereadable(lines: Iterable[str]) -> Iterator[Callable[[], Iterator[str]]]:
    """A function that reads the lines again; an iterator is buffered on disk first."""
    if iter(lines) is not lines:
        yield lambda: iter(lines)
        return
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")

        def read() -> Iterator[str]:
            file.seek(0)
            return map(json.loads, file)

        yield read
