"""Tokens of a vocabulary: by number, by text, and how they read."""

from typing import Any

import torch

from glassformer.errors import TraceError
from glassformer.text.tokenizer import Tokenizer
from glassformer.tracing.readout import ClassLabels
from glassformer.tracing.text_labels import label_rows


def name_tokens(tokenizer: Any, tokens: list[int]) -> list[str]:
    """How tokens read, each by itself; their numbers without a tokenizer."""
    if tokenizer is None:
        return [str(token) for token in tokens]
    return [
        row[0] for row in label_rows(tokenizer, torch.tensor(tokens, dtype=torch.long)[:, None])
    ]


def resolve_token(token: int | str, n: int, tokenizer: Any) -> int:
    """The number of a token of a vocabulary of n, by its number or its text; or of a class."""
    if isinstance(token, int):
        if not 0 <= token < n:
            raise TraceError(f"Tokens are numbered 0 … {n - 1}; got {token}.")
        return token
    if isinstance(tokenizer, ClassLabels):
        if token not in tokenizer.names:
            known = ", ".join(tokenizer.names[:8]) + (", …" if n > 8 else "")
            raise TraceError(f"A class must be one of {known}; got {token!r}.")
        return tokenizer.names.index(token)
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    if tokenizer is None:
        raise TraceError(f"Naming a token by its text needs a tokenizer; got {token!r}.")
    ids = _encode(tokenizer, token)
    if len(ids) != 1:
        pieces = " ".join(repr(label) for label in name_tokens(tokenizer, ids)) or "nothing"
        raise TraceError(
            f"A token must be one of the vocabulary; {token!r} is {len(ids)}: {pieces}. "
            "Name one of them, mind the space before it."
        )
    return ids[0]


def _encode(tokenizer: Any, text: str) -> list[int]:
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.encode(text, add_special=False)
    return list(tokenizer.encode(text, add_special_tokens=False))
