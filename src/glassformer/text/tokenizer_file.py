"""Limits on a `tokenizer.json`, checked before the library builds anything from it.

added tokens, pieces     built into one automaton over all letters: long ones are rejected
normalizers, decoders    Replace can lengthen a text at every step: the product is bounded
post-processors          a template may repeat a text: at most a few times
"""

import base64
import contextlib
import struct
from collections.abc import Iterator
from typing import Any

from glassformer.errors import CheckpointError, DataError, GlassformerError
from glassformer.parsing import parse_json
from glassformer.settings import quote, summarize_error

MOST_BYTES = 256 << 20
MOST_PIECE = 4096  # characters; the longest real ones are a few hundred spaces or dashes
_MOST_GROWTH = 256  # of a text over all steps; Unicode's own normal forms reach 18
_MOST_STEPS = 64
_MOST_REPEATS = 8


@contextlib.contextmanager
def library_errors(problem: str, error: type[GlassformerError] = CheckpointError) -> Iterator[None]:
    """Convert the errors of the tokenizers library into one sentence.

    It raises bare Exceptions and, if it panics, pyo3's PanicException, which is a BaseException.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, GlassformerError):
        raise
    except BaseException as wrong:
        if not isinstance(wrong, Exception) and type(wrong).__name__ != "PanicException":
            raise
        raise error(f"{problem}: {summarize_error(wrong)}.") from None


def read_backend(text: str, where: str) -> Any:
    """Build the library's tokenizer from a `tokenizer.json`."""
    from tokenizers import Tokenizer as Backend

    check_file(parse_json(text, where), where)
    with library_errors(f"{where} is not a tokenizer"):
        return Backend.from_str(text)


def check_file(plain: Any, where: str) -> None:
    """Reject a small description that would expand hugely when built or used."""
    if not isinstance(plain, dict) or not isinstance(plain.get("model"), dict):
        raise CheckpointError(f"{where} is not a tokenizer: it must be an object with a model.")
    for token in _list(plain, "added_tokens", where):
        check_pieces([token.get("content") if isinstance(token, dict) else token], where)
        if not isinstance(token, dict) or not _is_below(token.get("id"), 2**31):
            raise CheckpointError(f"{where} has an added token without an id: {quote(token)}.")
    model = plain["model"]
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        check_vocabulary(vocab, where)
    elif isinstance(vocab, list):
        check_pieces(
            [entry[0] if isinstance(entry, list) and entry else "" for entry in vocab], where
        )
    most = model.get("max_input_chars_per_word", 100)
    if not _is_below(most, 65_536):
        raise CheckpointError(
            f"max_input_chars_per_word in {where} must be below 65,536; it is {quote(most)}."
        )
    for part in ("normalizer", "pre_tokenizer", "decoder", "post_processor"):
        _check_steps(plain.get(part), part, where)


def _check_steps(part: Any, name: str, where: str) -> None:
    growth, n_steps, repeats = 1.0, 0, 0
    waiting = [part]
    while waiting:
        step = waiting.pop()
        if isinstance(step, list):
            waiting += step
        if not isinstance(step, dict):
            continue
        n_steps += 1
        if step.get("type") == "Precompiled":
            _check_charsmap(step.get("precompiled_charsmap"), where)
        if isinstance(step.get("content"), str):
            growth *= max(1.0, _growth(step.get("pattern"), step["content"]))
        growth *= 1 + len(step.get("prepend") or "") / 64 if name == "normalizer" else 1
        for form in ("single", "pair"):
            repeats = max(repeats, str(step.get(form)).count("'Sequence'"))
        waiting += [inner for key, inner in step.items() if isinstance(inner, list | dict)]
        if n_steps > 100 * _MOST_STEPS:
            break
    if growth > _MOST_GROWTH or n_steps > 100 * _MOST_STEPS or repeats > _MOST_REPEATS:
        raise CheckpointError(
            f"The {name} in {where} must not lengthen texts much; this one may make them "
            f"{max(growth, repeats, n_steps):.3g} times as long."
        )


def _check_charsmap(text: Any, where: str) -> None:
    """Check SentencePiece's character table: the library trusts the size at its beginning."""
    try:
        raw = base64.b64decode(text, validate=True)
        (size,) = struct.unpack("<I", raw[:4])
    except (TypeError, ValueError, struct.error):
        raw, size = b"", 1
    if size % 4 or size > len(raw) - 4:
        raise CheckpointError(
            f"precompiled_charsmap in {where} must be a table of characters in base64; it is "
            f"{quote(text)}."
        )


def _growth(pattern: Any, content: str) -> float:
    literal = pattern.get("String") if isinstance(pattern, dict) else None
    return len(content) / max(1, len(literal)) if isinstance(literal, str) else float(len(content))


def check_pieces(pieces: Any, where: str) -> None:
    for piece in pieces:
        if not isinstance(piece, str) or len(piece) > MOST_PIECE:
            raise CheckpointError(
                f"Pieces in {where} must be texts of at most {MOST_PIECE:,} characters; one is "
                f"{quote(piece)}."
            )


def check_vocabulary(ids: dict[str, Any], where: str) -> None:
    """Reject a vocabulary with invalid ids."""
    check_pieces(ids, where)
    wrong = next((v for v in ids.values() if not _is_below(v, 2**31)), None)
    if wrong is not None:
        raise CheckpointError(f"Pieces in {where} must have ids from 0 up; one has {quote(wrong)}.")


def _list(plain: dict[str, Any], name: str, where: str) -> list[Any]:
    value = plain.get(name) or []
    if not isinstance(value, list):
        raise CheckpointError(f"{name} in {where} must be a list; it is {quote(value)}.")
    return value


def _is_below(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def check_known(tokens: list[int], n_known: int | None) -> list[int]:
    """The ids, after checking that a model with `n_known` tokens has embeddings for them."""
    if n_known is not None and tokens and max(tokens) >= n_known:
        raise DataError(
            f"Tokens must be below {n_known}, the vocabulary size of the model; its tokenizer "
            f"gives {max(tokens)}. Tokenizer and weights belong to different models."
        )
    return tokens
