"""Five ways to find a vocabulary in lines of text; the same lines always give the same one.

byte-bpe     pairs of bytes, merged by how often they stand together (Radford et al. 2019)
bpe          pairs of characters, blanks written ▁, rare characters as bytes (Kudo et al. 2018)
wordpiece    pairs within words, inner pieces written ##… (Devlin et al. 2019)
characters   every character
words        every word of a text that is split by blanks already
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
_MOST_WORD = 1000  # characters, in learning


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyRequest:
    """What a vocabulary should be like; `special` pieces take the first ids."""

    special: tuple[str, ...]
    vocab_size: int | None
    lowercase: bool
    min_count: int
    unknown: str
    continued: str  # "words": the end of a word whose next part follows, such as @@

    def room(self, least: int) -> int:
        """The ids left for what the text decides; at least one."""
        if self.vocab_size is None:
            raise ConfigError(
                "This kind of tokenizer must be told its vocab_size; got None. Try vocab_size=8000."
            )
        room = self.vocab_size - len(self.special) - least
        if room < 1:
            raise ConfigError(
                f"vocab_size must be above {len(self.special) + least}, the pieces that every such "
                f"vocabulary has; got vocab_size={self.vocab_size}."
            )
        return room


def byte_pairs(lines: Iterable[str], wish: VocabularyRequest) -> Any:
    from tokenizers import decoders, pre_tokenizers, trainers

    wish.room(least=256)
    backend = _pairs_backend(wish)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=wish.vocab_size or 0,
        min_frequency=wish.min_count,
        special_tokens=list(wish.special),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    _train(backend, _some(lines), trainer)
    return backend


def character_pairs(lines: Iterable[str], wish: VocabularyRequest) -> Any:
    from tokenizers import decoders, pre_tokenizers, trainers

    room = wish.room(least=len(BYTES))
    backend = _pairs_backend(wish)
    # Marks and digits stay apart, so that a word is the same piece before a comma or a full stop.
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    with _twice(_some(lines)) as read:
        alphabet = _alphabet(backend, read(), most=max(1, room // 2), before=("▁",))
        trainer = trainers.BpeTrainer(
            vocab_size=wish.vocab_size or 0,
            min_frequency=wish.min_count,
            special_tokens=[*wish.special, *BYTES],
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        _train(backend, read(), trainer)
    return _ordinary(backend, BYTES, byte_fallback=True)


def word_pieces(lines: Iterable[str], wish: VocabularyRequest) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    room = wish.room(least=0)
    backend = Backend(models.WordPiece(unk_token=wish.unknown))
    backend.normalizer = normalizers.BertNormalizer(lowercase=wish.lowercase, strip_accents=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    with _twice(_some(lines)) as read:
        alphabet = _alphabet(backend, read(), most=max(1, room // 3))
        # The library numbers inner characters in an order that differs from run to run, which
        # decides ties between pairs. Given beforehand, they keep theirs.
        inner = [f"##{c}" for c in _inner_characters(backend, read()) if c in set(alphabet)]
        trainer = trainers.WordPieceTrainer(
            vocab_size=wish.vocab_size or 0,
            min_frequency=wish.min_count,
            special_tokens=[*wish.special, *inner],
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        _train(backend, read(), trainer)
    return _ordinary(backend, inner)


def characters(lines: Iterable[str], wish: VocabularyRequest) -> Any:
    from tokenizers import Regex, decoders, pre_tokenizers

    if wish.vocab_size is not None:
        raise ConfigError(
            f"vocab_size must be None for characters: each has its id; got {wish.vocab_size}."
        )
    found: set[str] = set()
    for line in _some(lines):
        found.update(line.lower() if wish.lowercase else line)
    backend = _listed(sorted(found), wish)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    backend.decoder = decoders.Fuse()
    return backend


def words(lines: Iterable[str], wish: VocabularyRequest) -> Any:
    from tokenizers import Regex, decoders, pre_tokenizers

    room = None if wish.vocab_size is None else wish.room(least=0)
    counted: Counter[str] = Counter()
    for line in _some(lines):
        counted.update(re.split(_BLANKS, line.lower() if wish.lowercase else line))
    counted.pop("", None)
    often = [word for word, count in counted.items() if count >= wish.min_count]
    if not often:
        raise ConfigError(
            f"At least one word must occur min_count={wish.min_count} times; none does. "
            "Lower min_count."
        )
    often.sort(key=lambda word: (-counted[word], word))
    backend = _listed(often[:room], wish)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(_BLANKS), "removed")
    if wish.continued:
        mark = re.escape(wish.continued)
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
    """Learn merges from words of at most _MOST_WORD characters, longer ones cut.

    The time for a word grows with the square of its length. Only blobs such as base64 have words
    that long; in all other texts nothing is cut.
    """
    from tokenizers import Regex, pre_tokenizers

    used = backend.pre_tokenizer
    cut = pre_tokenizers.Split(Regex(rf"(?m:.{{1,{_MOST_WORD}}})"), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([used, cut])
    with library_errors("No tokenizer can be learnt from this text", DataError):
        backend.train_from_iterator(lines, trainer)
    backend.pre_tokenizer = used


def _pairs_backend(wish: VocabularyRequest) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import models, normalizers

    backend = Backend(models.BPE())
    if wish.lowercase:
        backend.normalizer = normalizers.Lowercase()
    return backend


def _listed(pieces: list[str], wish: VocabularyRequest) -> Any:
    from tokenizers import AddedToken, models, normalizers
    from tokenizers import Tokenizer as Backend

    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys([*wish.special, *pieces]))}
    backend = Backend(models.WordLevel(vocabulary, unk_token=wish.unknown))
    if wish.lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.add_special_tokens([AddedToken(piece, special=True) for piece in wish.special])
    return backend


def _alphabet(
    backend: Any, lines: Iterable[str], most: int, before: tuple[str, ...] = ()
) -> list[str]:
    """The `most` frequent characters; ties go to the lower code point."""
    counted: Counter[str] = Counter()
    for line in lines:
        counted.update(backend.normalizer.normalize_str(line) if backend.normalizer else line)
    found = [c for c in counted if not c.isspace() and c not in before]
    return sorted([*before, *sorted(found, key=lambda c: (-counted[c], c))[:most]])


def _inner_characters(backend: Any, lines: Iterable[str]) -> list[str]:
    """The characters that stand within or at the end of a word."""
    seen: set[str] = set()
    found: set[str] = set()
    for line in lines:
        for part in backend.normalizer.normalize_str(line).split():
            if part not in seen:
                seen.add(part)
                for word, _ in backend.pre_tokenizer.pre_tokenize_str(part):
                    found.update(word[1:])
    return sorted(found)


def _ordinary(backend: Any, pieces: Iterable[str], **settings: bool) -> Any:
    """The same tokenizer, `pieces` no longer special: they only had to have ids beforehand."""
    from tokenizers import Tokenizer as Backend

    plain, hidden = json.loads(backend.to_str()), set(pieces)
    plain["added_tokens"] = [t for t in plain["added_tokens"] if t["content"] not in hidden]
    plain["model"].update(settings)
    return Backend.from_str(json.dumps(plain))


def _some(lines: Iterable[str]) -> Iterable[str]:
    """The lines, refused once they turn out to hold no character."""
    if iter(lines) is not lines:  # may be read again: keep it so
        return _Refusing(lines)
    return _refusing(lines)


@dataclass(frozen=True, slots=True)
class _Refusing:
    lines: Iterable[str]

    def __iter__(self) -> Iterator[str]:
        return _refusing(self.lines)


def _refusing(lines: Iterable[str]) -> Iterator[str]:
    empty = True
    for line in lines:
        empty = empty and not line.strip()
        yield line
    if empty:
        raise ConfigError(
            "A tokenizer must be learnt from at least one word; the text is empty. "
            "Check that the files are the right ones."
        )


@contextmanager
def _twice(lines: Iterable[str]) -> Iterator[Callable[[], Iterator[str]]]:
    """A way to read lines more than once; what cannot be read again waits on the disk."""
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
