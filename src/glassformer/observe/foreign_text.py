"""How the tokens of a transformers tokenizer read."""

from collections.abc import Sequence
from typing import Any

from glassformer.text.pieces import labels, visible
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer


def foreign_labels(tokenizer: Any, tokens: Sequence[int]) -> list[str]:
    """One label for each token, whatever reads them: a processor, a fast or a slow tokenizer."""
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    if isinstance(tokenizer, Tokenizer):
        return labels(tokenizer, tokens)
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        return labels(_Borrowed(backend), tokens)
    pieces = tokenizer.convert_ids_to_tokens(list(tokens))
    return [visible(str(piece).replace("▁", " ")) for piece in pieces]


class _Borrowed(JsonTokenizer):
    """Only asked how tokens read: what its owner set for padding and truncation stays."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.chat_template = None
