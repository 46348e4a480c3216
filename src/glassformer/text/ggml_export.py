"""A tokenizer as the fields of a GGUF header, from which `ggml` reads the same one.

What was written is read again before it is handed out: a tokenizer that GGUF has no words for is
refused, and never becomes a similar one.
"""

import json
import re
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.text.ggml import (
    BYTE,
    CONTROL,
    ENDS,
    NORMAL,
    OWN_ROLES,
    ROLES,
    SPLITS,
    UNKNOWN,
    UNUSED,
    USER,
    build_splitter,
    tokenizer_of_header,
)
from glassformer.text.special_tokens import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer

_BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")


def header_of_tokenizer(
    tokenizer: Tokenizer | None, special: SpecialTokens, vocab_size: int
) -> dict[str, Any]:
    """The fields about a tokenizer, with as many pieces as the model has embeddings."""
    fields = _write_roles(special)
    if tokenizer is None:
        return fields | {"tokenizer.ggml.model": "none"}
    if not isinstance(tokenizer, JsonTokenizer):
        raise CheckpointError(
            f"A GGUF file holds one vocabulary; this model's tokenizer is of the kind "
            f"{tokenizer.kind}."
        )
    plain = json.loads(tokenizer.backend.to_str())
    fields |= _write_pieces(tokenizer, plain, vocab_size)
    if tokenizer.chat_template is not None:
        fields["tokenizer.chat_template"] = tokenizer.chat_template
    if special.begin is not None:
        first = _ids_around(plain.get("post_processor"))
        fields["tokenizer.ggml.add_bos_token"] = first[:1] == [special.begin]
    _check_same(plain, fields)
    return fields


def _write_roles(special: SpecialTokens) -> dict[str, Any]:
    if len(special.end) > len(ENDS):
        raise CheckpointError(
            f"A GGUF file names at most {len(ENDS)} tokens that end a text; this model has "
            f"{len(special.end)}."
        )
    named = {name: getattr(special, role) for role, name in ROLES.items()}
    named |= dict(zip(ENDS, special.end, strict=False))
    fields: dict[str, Any] = {
        f"tokenizer.ggml.{name}": token for name, token in named.items() if token is not None
    }
    for role, name in OWN_ROLES.items():
        if tokens := getattr(special, role):
            fields[name] = list(tokens)
    return fields


def _write_pieces(tokenizer: JsonTokenizer, plain: Any, vocab_size: int) -> dict[str, Any]:
    model, ids = plain["model"], tokenizer.backend.get_vocab(with_added_tokens=True)
    beyond = [piece for piece, token in ids.items() if token >= vocab_size]
    if beyond:
        raise CheckpointError(
            f"A GGUF file has one embedding per piece; {beyond[0]!r} of this tokenizer is beyond "
            f"the {vocab_size} of the model."
        )
    if model["type"] != "BPE":
        raise CheckpointError(
            "A GGUF file can hold a byte-level or a scored BPE tokenizer; this model's is of the "
            f"kind {model['type']}."
        )
    pieces = [f"[PAD{i}]" for i in range(vocab_size)]
    types = [UNUSED] * vocab_size
    for piece, token in ids.items():
        pieces[token] = piece
        is_byte = model["byte_fallback"] and _BYTE_PIECE.fullmatch(piece)
        is_unknown = piece == model["unk_token"]
        types[token] = UNKNOWN if is_unknown else BYTE if is_byte else NORMAL
    for added in plain["added_tokens"]:
        types[added["id"]] = CONTROL if added["special"] else USER
    fields = {"tokenizer.ggml.tokens": pieces, "tokenizer.ggml.token_type": types}
    if model["byte_fallback"]:
        return fields | _write_scores(plain, ids, pieces)
    return fields | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": _name_split(plain["pre_tokenizer"]),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
    }


def _name_split(pre_tokenizer: Any) -> str:
    wanted = _steps(pre_tokenizer)
    for name in SPLITS:
        if _steps(json.loads(build_splitter(name).__getstate__())) == wanted:
            return name
    raise _unknown_part("pre_tokenizer", pre_tokenizer)


def _write_scores(plain: Any, ids: dict[str, int], pieces: list[str]) -> dict[str, Any]:
    """Scores that put the merges into their order; those whose merges interleave share one."""
    model = plain["model"]
    last = {left + right: i for i, (left, right) in enumerate(model["merges"])}
    scores, score, until = dict.fromkeys(pieces, float(-len(pieces))), 0.0, -1
    for i, (left, right) in enumerate(model["merges"]):
        score -= i > until
        until = max(until, last[left + right])
        scores[left + right] = score
    fields = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.scores": [scores[piece] for piece in pieces],
        "tokenizer.ggml.add_space_prefix": "Prepend" in str(plain["normalizer"]),
    }
    if model["unk_token"] is not None:
        fields["tokenizer.ggml.unknown_token_id"] = ids[model["unk_token"]]
    return fields


def _check_same(plain: Any, fields: dict[str, Any]) -> None:
    again, _ = tokenizer_of_header(fields, "the GGUF file to be written")
    assert isinstance(again, JsonTokenizer)
    wanted, found = _essence(plain), _essence(json.loads(again.backend.to_str()))
    for part, value in wanted.items():
        if value != found[part]:
            raise _unknown_part(part, plain[part])


def _unknown_part(name: str, part: Any) -> CheckpointError:
    kind = f" ({part['type']})" if isinstance(part, dict) and "type" in part else ""
    return CheckpointError(
        f"A GGUF file cannot hold this model's tokenizer: it has no field for its {name}{kind}."
    )


def _essence(plain: Any) -> dict[str, Any]:
    """What decides which ids a text gets and which text ids give."""
    model = dict(plain["model"])
    added = {token["content"]: token["id"] for token in plain["added_tokens"]}
    model["vocab"] = model["vocab"] | added
    return {
        "model": {name: value or None for name, value in model.items()},
        "added_tokens": plain["added_tokens"],
        "normalizer": _steps(plain["normalizer"]),
        "pre_tokenizer": _steps(plain["pre_tokenizer"]),
        "post_processor": _ids_around(plain["post_processor"]),
        "decoder": [
            {"type": "ByteLevel"} if step["type"] == "ByteLevel" else step
            for step in _steps(plain["decoder"])
        ],
    }


def _steps(part: Any) -> list[Any]:
    """The steps one after the other, without what only offsets depend on."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        inner = next(value for value in part.values() if isinstance(value, list))
        return [step for each in inner for step in _steps(each)]
    return [{name: value for name, value in part.items() if name != "trim_offsets"}]


def _ids_around(post_processor: Any) -> list[Any]:
    """The ids that are put around a text, which itself is None."""
    found: list[Any] = [None]
    for step in _steps(post_processor):
        if step["type"] == "ByteLevel":  # moves offsets alone
            continue
        if step["type"] != "TemplateProcessing":
            return [step]
        tokens = step["special_tokens"]
        found = []
        for each in step["single"]:
            name = each.get("SpecialToken", {}).get("id")
            found += [None] if name is None else tokens[name]["ids"]
    return found
