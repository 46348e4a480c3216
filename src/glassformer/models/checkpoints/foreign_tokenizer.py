"""The tokenizer in a transformers folder, with the ids that its configs give parts to play."""

import json
from pathlib import Path
from typing import Any

from glassformer.parsing import read_json, read_text
from glassformer.text import SpecialTokens, Tokenizer, read_tokenizer

_CLASSES = {"json": "PreTrainedTokenizerFast", "marian": "MarianTokenizer"}


def read_foreign_tokenizer(
    folder: Path, values: dict[str, Any]
) -> tuple[Tokenizer | None, SpecialTokens]:
    """The tokenizer, None where the folder has none; `values` is config.json."""
    settings = _optional(folder / "tokenizer_config.json")
    tokenizer = read_tokenizer(folder, settings)
    settings = {**_optional(folder / "special_tokens_map.json"), **settings}
    # What is said of generation is closest to what is wanted here.
    ids = {
        **values,
        **{k: v for k, v in _optional(folder / "generation_config.json").items() if v is not None},
    }
    special = _special(ids, settings, tokenizer)
    if tokenizer is None:
        return None, special
    template = settings.get("chat_template")
    if (folder / "chat_template.jinja").is_file():
        template = read_text(folder / "chat_template.jinja")
    tokenizer.chat_template = template if isinstance(template, str) else None
    return tokenizer, special


def foreign_tokenizer_files(tokenizer: Tokenizer, special: SpecialTokens) -> dict[str, bytes]:
    """The files that transformers needs to build the same tokenizer."""
    roles = {
        "bos_token": special.begin,
        "eos_token": special.end[0] if special.end else None,
        "pad_token": special.pad,
        "mask_token": special.mask,
    }
    settings = {
        "tokenizer_class": _CLASSES[tokenizer.kind],
        **{role: tokenizer.piece(token) for role, token in roles.items() if token is not None},
        **({} if tokenizer.chat_template is None else {"chat_template": tokenizer.chat_template}),
    }
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    return {**tokenizer.files(), "tokenizer_config.json": text.encode()}


def _special(
    ids: dict[str, Any], settings: dict[str, Any], tokenizer: Tokenizer | None
) -> SpecialTokens:
    def id_of(piece: str) -> int | None:
        return None if tokenizer is None else tokenizer.id_of(piece)

    def role(name: str) -> int | None:
        if _is_id(ids.get(f"{name}_id")):
            return ids[f"{name}_id"]
        piece = settings.get(name)
        piece = piece.get("content") if isinstance(piece, dict) else piece
        return id_of(piece) if isinstance(piece, str) else None

    ends = ids.get("eos_token_id")
    several = tuple(filter(_is_id, ends)) if isinstance(ends, list) else ()
    end = role("eos_token")
    begin, pad = role("bos_token"), role("pad_token")
    start: tuple[int, ...] = ()
    if ids.get("is_encoder_decoder"):
        first = ids.get("decoder_start_token_id")
        first = (pad if ids.get("model_type") == "t5" else begin) if first is None else first
        both = (first, ids.get("forced_bos_token_id"))
        start = tuple(token for token in both if token is not None and _is_id(token))
    masks = (role("mask_token"), id_of("[MASK]"), id_of("<mask>"))
    banned = ids.get("bad_words_ids")
    words = banned if isinstance(banned, list) else []
    return SpecialTokens(
        begin=begin,
        end=several or (() if end is None else (end,)),
        pad=pad,
        mask=next((token for token in masks if token is not None), None),
        start=start,
        never=tuple(w[0] for w in words if isinstance(w, list) and len(w) == 1 and _is_id(w[0])),
    )


def _is_id(value: Any) -> bool:
    """Whether a value names a token; some configs write −1 for none."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
