"""The tokenizer in a folder, detected from its files."""

from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.parsing import read_json, read_text
from glassformer.settings import quote
from glassformer.text import marian
from glassformer.text.coverage import read_coverage
from glassformer.text.marian import MarianTokenizer
from glassformer.text.shortlist import read_shortlist
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer
from glassformer.text.tokenizer_file import (
    MOST_BYTES,
    check_pieces,
    check_vocabulary,
    library_errors,
)


def read_tokenizer(folder: Path, settings: dict[str, Any] | None = None) -> Tokenizer | None:
    """The tokenizer in a folder, or None.

    `settings` are those of a foreign `tokenizer_config.json`; they are used only if there is no
    `tokenizer.json`, which holds everything.
    """
    settings = settings or {}
    if (folder / "tokenizer.json").is_file():
        path = folder / "tokenizer.json"
        tokenizer = JsonTokenizer.from_json(read_text(path, most=MOST_BYTES), str(path))
        tokenizer.coverage = read_coverage(folder, tokenizer.vocab_size)
        tokenizer.shortlist = read_shortlist(folder, tokenizer.vocab_size)
        return tokenizer
    if (folder / "source.spm").is_file():
        files = {name: _bytes(folder / name) for name in marian.FILES}
        return MarianTokenizer(files, str(folder))
    if (folder / "vocab.txt").is_file():
        return _word_pieces(folder / "vocab.txt", settings)
    if (folder / "merges.txt").is_file():
        return _byte_pairs(folder, settings)
    return None


def _word_pieces(vocabulary: Path, settings: dict[str, Any]) -> Tokenizer:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

    lines = [line.rstrip() for line in _lines(vocabulary)]
    check_pieces(lines, str(vocabulary))
    ids = {piece: i for i, piece in enumerate(lines)}
    with library_errors(f"{vocabulary} is not a vocabulary"):
        backend = Backend(models.WordPiece(ids, unk_token="[UNK]"))
    accents = settings.get("strip_accents")
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True) is not False,
        strip_accents=accents if isinstance(accents, bool) else None,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True) is not False,
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    needed = {name: _require_token(backend, name, vocabulary) for name in ("[CLS]", "[SEP]")}
    known = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    backend.add_special_tokens([t for t in known if backend.token_to_id(t) is not None])
    backend.post_processor = processors.BertProcessing(
        ("[SEP]", needed["[SEP]"]), ("[CLS]", needed["[CLS]"])
    )
    return JsonTokenizer(backend)


def _byte_pairs(folder: Path, settings: dict[str, Any]) -> Tokenizer:
    from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors
    from tokenizers import Tokenizer as Backend

    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    ids = read_json(vocabulary, most=MOST_BYTES)
    check_vocabulary(ids, str(vocabulary))
    with library_errors(f"{merges} is not a vocabulary"):
        backend = Backend(models.BPE(ids, _merges(merges)))
    prefix = bool(settings.get("add_prefix_space", False))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    known = [
        t for t in ("<s>", "</s>", "<pad>", "<unk>", "<mask>") if backend.token_to_id(t) is not None
    ]
    backend.add_special_tokens([AddedToken(t, lstrip=t == "<mask>", special=True) for t in known])
    if {"<s>", "</s>", "<mask>"} <= set(known):  # RoBERTa and BART mark the ends of a text
        backend.post_processor = processors.RobertaProcessing(
            ("</s>", _require_token(backend, "</s>", vocabulary)),
            ("<s>", _require_token(backend, "<s>", vocabulary)),
            add_prefix_space=prefix,
        )
    elif backend.token_to_id("<|endoftext|>") is not None:
        backend.add_special_tokens(["<|endoftext|>"])
    return JsonTokenizer(backend)


def _merges(path: Path) -> list[tuple[str, str]]:
    lines = _lines(path)
    lines = lines[1:] if lines and lines[0].startswith("#version") else lines
    found = [tuple(line.split(" ")) for line in lines if line]
    wrong = next((pair for pair in found if len(pair) != 2), None)
    if wrong is not None:
        raise CheckpointError(
            f"{path} is not a vocabulary: a line must name two pieces; one is {quote(wrong)}."
        )
    return found  # type: ignore[return-value]


def _lines(path: Path) -> list[str]:
    """Split only at line feeds: other separators may be pieces."""
    text = read_text(path, most=MOST_BYTES)
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _require_token(backend: Any, token: str, path: Path) -> int:
    found = backend.token_to_id(token)
    if found is None:
        raise CheckpointError(f"{path} must have the token {token}; it does not.")
    return found


def _bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if not path.is_file():  # a device may never end
            raise CheckpointError(f"{path} cannot be read: it is not a regular file.")
        if size > MOST_BYTES:
            raise CheckpointError(f"{path} must have at most {MOST_BYTES:,} bytes; it is larger.")
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
