"""How tokens read, and the texts of a site's rows and columns."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.text.pieces import labels, make_visible
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer
from glassformer.tracing.site import Site
from glassformer.tracing.trace import Run, TracedText

EMBEDDED = -1  # instead of a token: the model was given its embedding


def label_tokens(tokenizer: Any, tokens: Sequence[int]) -> list[str]:
    """One label for each token, by any tokenizer: a processor, a fast or a slow one, or ours."""
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    if isinstance(tokenizer, Tokenizer):
        return labels(tokenizer, tokens)
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        return labels(_Borrowed(backend), tokens)
    pieces = tokenizer.convert_ids_to_tokens(list(tokens))
    return [make_visible(str(piece).replace("▁", " ")) for piece in pieces]


class _Borrowed(JsonTokenizer):
    """Only labels tokens: its owner's padding and truncation stay as they are."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.chat_template = None


def label_rows(tokenizer: Any, tokens: Int[Tensor, "B L"]) -> list[list[str]]:
    """Labels of every sequence; none without a tokenizer, if all tokens are known."""
    if tokenizer is None and bool((tokens >= 0).all()):
        return []
    label_row = partial(map, _number) if tokenizer is None else partial(_label_row, tokenizer)
    return [list(label_row(row)) for row in tokens.tolist()]


def label_following(
    tokenizer: Any, tokens: Int[Tensor, "B L"], following: Int[Tensor, " B"] | None
) -> list[str]:
    """Labels of the tokens chosen to follow the last ones; none where nothing was chosen."""
    if following is None or len(following) != len(tokens):
        return []
    if tokenizer is None:
        return [str(token) for token in following.tolist()]
    rows = torch.cat([tokens, following.cpu()[:, None]], dim=1).tolist()
    return [_label_row(tokenizer, row)[-1] for row in rows]


def _label_row(tokenizer: Any, row: list[int]) -> list[str]:
    """Adjacent tokens are decoded together: several of them may form one character."""
    labels_: list[str] = []
    known: list[int] = []
    for token in (*row, EMBEDDED):
        if token >= 0:
            known.append(token)
            continue
        labels_ += label_tokens(tokenizer, known) if known else []
        known = []
        labels_.append(_number(token))
    return labels_[:-1]


def _number(token: int) -> str:
    return "(embedding)" if token < 0 else str(token)


def repeat_rows(rows: Tensor, batch: int) -> Tensor:
    """Repeat a source for each of its beams."""
    times = batch // len(rows) if len(rows) and batch % len(rows) == 0 else 1
    return rows.repeat_interleave(times, dim=0)


def name_texts(site: Site, run: Run, n_sinks: int) -> None:
    """Name the texts of a site's rows and columns; unknown tokens are numbered by position."""
    B, _, L, S = site.shape
    L = L if site.n_rows is None else site.n_rows
    site.queries = _find_text(run, site.queries, B, L)
    site.keys = _find_text(run, site.keys, B, S - n_sinks)
    if n_sinks:
        text = run.texts[site.keys]
        site.keys = f"sink and {site.keys}"
        tokens = torch.nn.functional.pad(text.tokens, (1, 0), value=-1)
        shown = text.labels or [[str(t) for t in row] for row in text.tokens.tolist()]
        run.texts[site.keys] = TracedText(tokens, [["(sink)", *row] for row in shown])


def _find_text(run: Run, name: str, B: int, length: int) -> str:
    """The text of this name if it fits, else one that numbers the positions."""
    for each in (name, f"{name}, by place"):
        if each not in run.texts:
            run.texts[each] = TracedText(torch.arange(length).expand(B, -1).clone(), [])
        if run.texts[each].tokens.shape == (B, length):
            return each
    name = f"{name}, {B} × {length} by place"
    run.texts[name] = TracedText(torch.arange(length).expand(B, -1).clone(), [])
    return name
