"""Where in a translation the spans go that its model could not read.

A span at an end of the text stays at that end. Any other goes where cross-attention leaves the
words before it and turns to those after it:

    gain(p) = before(p − 1) − before(p)  +  after(p) − after(p − 1)

before(r) and after(r) are the weights on the words next to the cut when token r is written, as a
mean over the heads of all layers; a word counts half as much as the one that is nearer.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.functional import attention_weights
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.source_text import SourceText, Translator
from glassformer.layers import Core
from glassformer.models import EncoderDecoder, build
from glassformer.models.lora import list_adapters
from glassformer.models.quantization import assign_state
from glassformer.text import Tokenizer
from glassformer.text.unreadable_spans import Span

_NEAR = 3  # words on each side of a cut
_WORD = re.compile(r"\w+|[^\w\s]")


def insert_spans(model: Translator, source: SourceText, written: Sequence[int]) -> str:
    """The translation with the spans of its source."""
    text = tokenizer_of(model).decode(written)
    if not source.spans:
        return text
    aligned = None
    if any(span.place == "middle" for span in source.spans):
        aligned = _align(model, source.tokens, written)
    found = [_find_place(model, source, span, written, text, aligned) for span in source.spans]
    places = [max(found[: i + 1]) for i in range(len(found))]  # spans keep their order
    whole, done = "", 0
    for span, place in zip(source.spans, places, strict=True):
        whole = _append(whole, text[done:place], is_spaced=False)
        whole = _append(whole, span.text, is_spaced=source.has_spaces and span.is_spaced[0])
        is_spaced = source.has_spaces and span.is_spaced[1] and text[place : place + 1].isalnum()
        whole, done = _append(whole, "", is_spaced=is_spaced), place
    return whole + text[done:]


def _append(text: str, more: str, *, is_spaced: bool) -> str:
    needs_space = is_spaced and text and not text[-1].isspace()
    return f"{text} {more}" if needs_space else text + more


def _find_place(
    model: Translator,
    source: SourceText,
    span: Span,
    written: Sequence[int],
    text: str,
    aligned: Float[Tensor, "L S"] | None,
) -> int:
    """The character of the translation before which a span goes."""
    if span.place == "start":
        return 0
    if span.place == "end":
        return len(text)
    if span.place == "before the last mark":
        return max((i + 1 for i, c in enumerate(text) if c.isalnum()), default=0)
    tokenizer = tokenizer_of(model)
    places = _list_places(tokenizer, written, text)
    if aligned is None:  # nothing says more than the share of the text
        wanted = len(text) * span.offset / max(1, len(source.text) - source.offset)
        return min(places.values(), key=lambda place: abs(place - wanted))
    before, after = _weigh_sides(tokenizer, source, span, aligned)
    gain = torch.cat((before[:1] * 0, before[:-1])) - before
    gain += after - torch.cat((after[:1] * 0, after[:-1]))
    return places[max(places, key=lambda p: float(gain[p]))]


def _list_places(tokenizer: Tokenizer, written: Sequence[int], text: str) -> dict[int, int]:
    """Where a span may go, by the number of tokens before: between characters, in no word."""
    found = {}
    for n in range(len(written) + 1):
        start = tokenizer.decode(written[:n])
        if text.startswith(start) and not _is_inside_word(text, len(start)):
            found[n] = len(start)
    return found


def _is_inside_word(text: str, place: int) -> bool:
    """Whether letters or digits on both sides belong together, as those of Chinese do not."""
    sides = (text[place - 1 : place], text[place : place + 1])
    return all(c.isalnum() for c in sides) and any(c.isdigit() or c != c.swapcase() for c in sides)


def _weigh_sides(
    tokenizer: Tokenizer, source: SourceText, span: Span, aligned: Float[Tensor, "L S"]
) -> tuple[Float[Tensor, " L"], Float[Tensor, " L"]]:
    """How much each token attends to the words before and after a cut."""
    text, cut = source.text, source.offset + span.offset
    words = [each.span() for each in _WORD.finditer(text) if each.start() >= source.offset]
    sides = (
        [word for word in words if word[1] <= cut][::-1],
        [word for word in words if word[0] >= cut],
    )
    totals = []
    for side in sides:
        total = torch.zeros(len(aligned))
        for distance, (start, stop) in enumerate(side[:_NEAR]):
            first, last = (
                len(tokenizer.encode(part, add_special=False))
                for part in (text[:start].rstrip(), text[:stop])
            )
            total += 0.5**distance * aligned[:, first:last].sum(-1)
        totals.append(total)
    return totals[0], totals[1]


@torch.no_grad()
def _align(
    model: Translator, source: Sequence[int], written: Sequence[int]
) -> Float[Tensor, "L S"] | None:
    """Cross-attention when each token is written, and at the end; None for models without it.

    A twin with the same weights reads the text once more, so that whoever watches the model sees
    nothing but the translation.
    """
    if not isinstance(model, EncoderDecoder) or list_adapters(model):
        return None
    twin: Any = build(model.config, device="meta").eval()
    assign_state(twin, model.state_dict())
    weights: list[Tensor] = []

    def record(_: Core, operands: tuple[Tensor, ...], options: dict[str, Any], __: Tensor) -> None:
        options = {name: value for name, value in options.items() if name != "dropout"}
        weights.append(attention_weights(*operands[:2], **options)[0].float().cpu())  # H L S

    for block in twin.decoder.blocks:
        block.cross.core.register_forward_hook(record, with_kwargs=True)
    device = model.embedding.weight.device
    start = list(model.special.start) or [model.special.begin or 0]
    read = (torch.tensor([tokens], device=device) for tokens in (list(source), [*start, *written]))
    twin(*read)
    return torch.cat(weights).mean(0)[len(start) - 1 :]
