"""A text on one of our models: what it read, what it wrote, and the trace of both."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from glassformer.errors import TraceError
from glassformer.generation import add_language_tag, rank_translations
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.encoder_tasks import GAP
from glassformer.generation.source_text import read_any_source
from glassformer.generation.translation import MAX_NEW_TOKENS
from glassformer.layers.block import Block
from glassformer.models import Encoder, EncoderDecoder
from glassformer.models.checkpoints import Model
from glassformer.text.pieces import labels
from glassformer.tracing import Trace, change, watch
from glassformer.tracing.interventions import Changes

ProgressCallback = Callable[[float], None]

_LEAST_LIMIT = 4096  # tokens that any model may be asked for, whatever it was made for
_CHARACTERS = 32  # of a text for each token that is allowed: enough to know that it is too long


class EmptyText(TraceError):
    """A text without a single token."""


def trace_text(
    model: Model,
    text: str,
    target: str | None = None,
    to: str | None = None,
    *,
    residual: bool = False,
    changes: Changes | None = None,
    progress: ProgressCallback = lambda _: None,
) -> Trace:
    """The model's attention over a text; an encoder-decoder writes its translation first.

    The written text is read once more in one pass, which gives the same numbers as the steps. What
    the translator cannot read is left out, as it is copied; a given `target` is read with the text
    as it is. Both passes are changed by `changes`. `progress` receives the share of the layers that
    have run.
    """
    is_restricted = True
    if isinstance(model, EncoderDecoder):
        text = add_language_tag(model, text, to)
        if target is None:
            _encode(model, text)  # refuses a text that is too long
            source = read_any_source(model, text)
            text, is_restricted = source.text, source.forbidden is not None
    elif isinstance(model, Encoder) and model.special.mask is not None:
        text = text.replace(GAP, tokenizer_of(model).piece(model.special.mask))
    on = model.embedding.weight.device
    tokens = torch.tensor([_encode(model, text)], device=on)
    if tokens.shape[1] == 0:
        raise EmptyText("A text to look at must have at least one token; got an empty one.")
    recorded = watch(model, outputs=True, residual=residual)
    if changes is not None:
        recorded = change(model, changes, outputs=True, residual=residual)
    if not isinstance(model, EncoderDecoder):
        with recorded as trace, torch.no_grad(), count_layers(model, progress):
            model(tokens)
        return trace
    start = list(model.special.start) or [model.special.begin or 0]
    most = max(1, min(MAX_NEW_TOKENS, model.config.max_len - len(start)))
    if target is None:
        writing = nullcontext() if changes is None else change(model, changes)
        # How much it will write is not known; whoever waits may give up at every token. (Hooks on
        # layers would have it written by modules, which takes three times as long.)
        with writing:
            ranked = rank_translations(
                model,
                [text],
                max_new_tokens=most,
                restricted=is_restricted,
                on_token=lambda: progress(0.0),
            )
        written = list(ranked[0][0].tokens)
    else:
        written = _encode(model, target, add_special=False)
    with recorded as trace, torch.no_grad(), count_layers(model, progress):
        model(tokens, torch.tensor([[*start, *written]], device=on))
    if target is None and len(written) < most and len(model.special.end) == 1:
        # A translation that ends before its limit has ended by its end token.
        end = labels(tokenizer_of(model), model.special.end)
        trace.run.texts["tokens"].following = end
    return trace


def trace_again(
    model: Model,
    trace: Trace,
    *,
    changes: Changes | None = None,
    progress: ProgressCallback = lambda _: None,
) -> Trace:
    """The run of a trace once more, with its residual stream; nothing is written anew."""
    texts, on = trace.run.texts, model.embedding.weight.device
    tokens = [texts[name].tokens.to(on) for name in ("source", "tokens") if name in texts]
    recorded = watch(model, outputs=True, residual=True)
    if changes is not None:
        recorded = change(model, changes, outputs=True, residual=True)
    with recorded as again, torch.no_grad(), count_layers(model, progress):
        model(*tokens)
    again.run.texts["tokens"].following = texts["tokens"].following
    return again


@contextmanager
def count_layers(model: Model, progress: ProgressCallback) -> Iterator[None]:
    """Report the share of the layers that have run, layer by layer."""
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    n_done = 0

    def count(*_: Any) -> None:
        nonlocal n_done
        n_done += 1
        progress(min(1.0, n_done / len(blocks)))

    hooks = [block.register_forward_hook(count) for block in blocks]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _encode(model: Model, text: str, **options: bool) -> list[int]:
    """The tokens of a text that is short enough to be looked at; a long one is not read to its end.

    Models without learned positions would take any text, and hours for a long one.
    """
    tokenizer = tokenizer_of(model)
    limit = max(model.config.max_len, _LEAST_LIMIT)
    start = text[: _CHARACTERS * limit]
    found = tokenizer.encode(start, **options)
    is_all = len(start) == len(text)
    if len(found) <= limit and not is_all:
        found, is_all = tokenizer.encode(text, **options), True
    if len(found) > limit:
        raise TraceError(
            f"A text to look at must have at most {limit:,} tokens with this model; got "
            f"{'' if is_all else 'more than '}{len(found):,}. Look at a part of it."
        )
    return found
