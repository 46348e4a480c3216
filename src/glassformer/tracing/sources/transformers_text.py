"""How the tokens of a transformers model read, and the texts of a site's rows and columns."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.text.pieces import labels, visible
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer
from glassformer.tracing.site import Site
from glassformer.tracing.trace import Run, Words

EMBEDDED = -1  # in place of a token: the model was given its embedding


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


def given_tokens(given: dict[str, Any]) -> Int[Tensor, "B L"] | None:
    """The tokens that a pass reads; where it reads embeddings, as many that nobody knows."""
    ids, embedded = given.get("input_ids"), given.get("inputs_embeds")
    if isinstance(ids, Tensor) and ids.ndim == 2:
        return ids.detach()
    if isinstance(embedded, Tensor) and embedded.ndim == 3:
        return torch.full(embedded.shape[:2], EMBEDDED, device=embedded.device)
    return None


def read_tokens(tokenizer: Any, tokens: Int[Tensor, "B L"]) -> list[list[str]]:
    """Labels of every sequence; none where nobody can read them."""
    rows = tokens.tolist()
    if tokenizer is None:
        is_known = all(token >= 0 for row in rows for token in row)
        return [] if is_known else [[_number(token) for token in row] for row in rows]
    return [_labels(tokenizer, row) for row in rows]


def _labels(tokenizer: Any, row: list[int]) -> list[str]:
    """Runs of tokens are read together: several of them may form one character."""
    found: list[str] = []
    known: list[int] = []
    for token in (*row, EMBEDDED):
        if token >= 0:
            known.append(token)
            continue
        found += foreign_labels(tokenizer, known) if known else []
        known = []
        found.append(_number(token))
    return found[:-1]


def _number(token: int) -> str:
    return "(embedding)" if token < 0 else str(token)


def repeat_rows(tokens: Int[Tensor, "B L"], batch: int) -> Tensor:
    """A source once for each of its beams."""
    times = batch // len(tokens) if len(tokens) and batch % len(tokens) == 0 else 1
    return tokens.repeat_interleave(times, dim=0)


def name_texts(site: Site, run: Run, n_sinks: int) -> None:
    """The texts of a site's rows and columns; where nobody knows tokens, their places."""
    B, _, L, S = site.shape
    L = L if site.n_rows is None else site.n_rows
    site.queries = _text(run, site.queries, B, L)
    site.keys = _text(run, site.keys, B, S - n_sinks)
    if n_sinks:
        words = run.texts[site.keys]
        site.keys = f"sink and {site.keys}"
        tokens = torch.nn.functional.pad(words.tokens, (1, 0), value=-1)
        shown = words.labels or [[str(t) for t in row] for row in words.tokens.tolist()]
        run.texts[site.keys] = Words(tokens, [["(sink)", *row] for row in shown])


def _text(run: Run, name: str, B: int, length: int) -> str:
    """The text of this name if it fits, else one that numbers the places."""
    for each in (name, f"{name}, by place"):
        if each not in run.texts:
            run.texts[each] = Words(torch.arange(length).expand(B, -1).clone(), [])
        if run.texts[each].tokens.shape == (B, length):
            return each
    name = f"{name}, {B} × {length} by place"
    run.texts[name] = Words(torch.arange(length).expand(B, -1).clone(), [])
    return name
