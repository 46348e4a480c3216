"""Which tokenizer a folder holds, by the files that are in it."""

from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.text import marian
from glassformer.text.marian import MarianTokenizer
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer


def read_tokenizer(folder: Path, settings: dict[str, Any] | None = None) -> Tokenizer | None:
    """The tokenizer in a folder, None where there is none.

    `settings` are those of a foreign `tokenizer_config.json`; they matter where there is no
    `tokenizer.json`, which holds everything.
    """
    settings = settings or {}
    if (folder / "tokenizer.json").is_file():
        text = _bytes(folder / "tokenizer.json").decode("utf-8", errors="replace")
        return JsonTokenizer.from_json(text, str(folder / "tokenizer.json"))
    if (folder / "source.spm").is_file():
        return MarianTokenizer({name: _bytes(folder / name) for name in marian.FILES})
    if (folder / "vocab.txt").is_file():
        return _word_pieces(folder / "vocab.txt", settings)
    if (folder / "merges.txt").is_file():
        return _byte_pairs(folder, settings)
    return None


def _word_pieces(vocabulary: Path, settings: dict[str, Any]) -> Tokenizer:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

    backend = _built(
        vocabulary,
        lambda: Backend(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]")),
    )
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    ids = {name: _needed(backend, name, vocabulary) for name in ("[CLS]", "[SEP]")}
    known = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    backend.add_special_tokens([t for t in known if backend.token_to_id(t) is not None])
    backend.post_processor = processors.BertProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
    )
    return JsonTokenizer(backend)


def _byte_pairs(folder: Path, settings: dict[str, Any]) -> Tokenizer:
    from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors
    from tokenizers import Tokenizer as Backend

    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    backend = _built(merges, lambda: Backend(models.BPE.from_file(str(vocabulary), str(merges))))
    prefix = bool(settings.get("add_prefix_space", False))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    known = [
        t for t in ("<s>", "</s>", "<pad>", "<unk>", "<mask>") if backend.token_to_id(t) is not None
    ]
    backend.add_special_tokens([AddedToken(t, lstrip=t == "<mask>", special=True) for t in known])
    if {"<s>", "</s>", "<mask>"} <= set(known):  # RoBERTa and BART mark the ends of a text
        backend.post_processor = processors.RobertaProcessing(
            ("</s>", _needed(backend, "</s>", vocabulary)),
            ("<s>", _needed(backend, "<s>", vocabulary)),
            add_prefix_space=prefix,
        )
    elif backend.token_to_id("<|endoftext|>") is not None:
        backend.add_special_tokens(["<|endoftext|>"])
    return JsonTokenizer(backend)


def _built(path: Path, make: Any) -> Any:
    try:
        return make()
    except Exception as error:  # the library raises nothing narrower
        raise CheckpointError(f"{path} is not a vocabulary: {error}.") from None


def _needed(backend: Any, token: str, path: Path) -> int:
    found = backend.token_to_id(token)
    if found is None:
        raise CheckpointError(f"{path} must have the token {token}; it has not.")
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
