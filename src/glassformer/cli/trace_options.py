"""What `look`, `steps`, `lens`, `why` and `change` share: a text on a model or a saved trace."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from glassformer.cli import model_options
from glassformer.cli.progress import ProgressCallback, progress_bar
from glassformer.cli.readability import is_readable
from glassformer.errors import ConfigError, InterventionError, TraceError
from glassformer.languages import Language
from glassformer.paths import user_path

if TYPE_CHECKING:
    from glassformer.models.checkpoints import Model
    from glassformer.tracing import Trace
    from glassformer.tracing.interventions import Changes

_LEAST_LIMIT = 4096  # tokens that any model may be asked for, whatever it was made for
_CHARACTERS = 32  # of a text for each token that is allowed: enough to know that it is too long


class EmptyText(TraceError):
    """A text without a single token."""


def options(language: Language) -> dict[str, Any]:
    """The options that say what to look at, by name."""
    say = language.say

    def option(name: str, metavar: str, text: str) -> Any:
        return typer.Option(f"--{name}", metavar=metavar, help=text)

    return {
        "target": option("target", "TEXT", say("look.target")),
        "to": option("to", "zh|fr", say("translate.to")),
        "site": option("site", "NAME", say("look.site")),
        "layer": option("layer", "N", say("look.layer")),
        "head": option("head", "N", say("look.head")),
        "trace": option("trace", "FILE", say("look.trace")),
        "run": option("run", "N", say("look.run")),
        "change": option("change", "CHANGE", say("look.change")),
    }


@dataclass(frozen=True, kw_only=True)
class ViewRequest:
    """What to look at: a text on a model, or a saved trace."""

    text: str | None
    target: str | None
    to: str | None
    model: str | None
    device: str | None
    dtype: str | None
    trace: str | None = None
    run: int | None = None
    change: str | None = None  # interventions as they print, or a file of them

    @property
    def is_saved(self) -> bool:
        """Whether a trace is to be opened, and no model run."""
        return self.text is None and self.trace is not None


def open_trace(
    request: ViewRequest,
    language: Language,
    *,
    append: bool = False,
    residual: bool = False,
    usual: str = "reader",
) -> "Trace":
    """The trace in a file, or that of a text, which --trace saves; `usual` is the default model."""
    # Imported here: help screens and usage errors must not load torch.
    from glassformer.tracing import Trace

    changes = None if request.change is None else read_change(request.change, language)
    if append and (request.trace is None or request.is_saved):
        raise TraceError(language.say("look.error.append"))
    if changes is not None and request.is_saved:
        raise TraceError(language.say("look.error.change"))
    if request.trace is not None and request.is_saved:
        with Console(stderr=True).status(language.say("saved.loading", source=request.trace)):
            found = Trace.load(request.trace)
        return found if request.run is None else found.only(request.run)
    if request.run is not None:
        raise TraceError(language.say("look.error.run"))
    model, sentence = open_model(request, language, usual=usual)
    found = run_text(model, sentence, request, language, residual=residual, changes=changes)
    found.holds = model  # a verdict runs it again
    if request.trace is not None and append:
        found.append(request.trace)
    elif request.trace is not None:
        found.save(request.trace)
    return found


def open_model(
    request: ViewRequest, language: Language, *, usual: str = "reader"
) -> tuple["Model", str]:
    """The model that reads a text, and the text."""
    from glassformer.models import EncoderDecoder

    sentence = model_options.text_or_input(request.text, language)
    default = usual if request.to is None and request.target is None else "translator"
    model = model_options.load_model(
        request.model, request.device, request.dtype, language, default=default
    )
    invents = request.target is None and isinstance(model, EncoderDecoder)
    if invents and not is_readable(model, sentence):
        raise ConfigError(language.say("translate.error.unreadable", got=repr(sentence[:60])))
    return model, sentence


def run_text(
    model: "Model",
    sentence: str,
    request: ViewRequest,
    language: Language,
    *,
    residual: bool,
    changes: "Changes | None" = None,
) -> "Trace":
    """`trace_text`, with a progress bar and errors in the user's language."""
    with progress_bar(language.say("look.running", n=f"{len(sentence):,}")) as progress:
        try:
            return trace_text(
                model,
                sentence,
                request.target,
                request.to,
                residual=residual,
                changes=changes,
                progress=progress,
            )
        except EmptyText:
            raise ConfigError(language.say("look.error.empty")) from None


def read_change(given: str, language: Language) -> "Changes":
    """What --change says: interventions as they print, or the name of a file of them."""
    from glassformer.tracing import load_changes
    from glassformer.tracing.interventions.expression import read_changes

    path = None
    with suppress(InterventionError):  # a long text cannot be a path
        path = user_path(given, InterventionError)
    if path is not None and path.is_file():
        return load_changes(path)
    if "(" not in given:
        raise InterventionError(language.say("look.error.change.unknown", got=repr(given[:60])))
    return read_changes(given)


def name_changes(trace: "Trace", language: Language) -> None:
    """Say which interventions a shown run was under, if any."""
    if "changes" in trace.model:
        typer.echo(language.say("look.changed", changes=trace.model["changes"]))


def trace_text(
    model: "Model",
    text: str,
    target: str | None = None,
    to: str | None = None,
    *,
    residual: bool = False,
    changes: "Changes | None" = None,
    progress: ProgressCallback = lambda _: None,
) -> "Trace":
    """The model's attention over a text; an encoder-decoder writes its translation first.

    The written text is read once more in one pass, which gives the same numbers as the steps. Both
    are changed by `changes`. `progress` receives the share of the layers that have run.
    """
    import torch

    from glassformer.generation import add_language_tag, rank_translations
    from glassformer.generation.continuation import tokenizer_of
    from glassformer.generation.translation import MAX_NEW_TOKENS
    from glassformer.models import EncoderDecoder
    from glassformer.text.pieces import labels
    from glassformer.tracing import change, watch

    if isinstance(model, EncoderDecoder):
        text = add_language_tag(model, text, to)
    on = model.embedding.weight.device
    tokens = torch.tensor([_encode(model, text)], device=on)
    if tokens.shape[1] == 0:
        raise EmptyText("A text to look at must have at least one token; got an empty one.")
    recorded = watch(model, outputs=True, residual=residual)
    if changes is not None:
        recorded = change(model, changes, outputs=True, residual=residual)
    if not isinstance(model, EncoderDecoder):
        with recorded as trace, torch.no_grad(), _count_layers(model, progress):
            model(tokens)
        return trace
    start = list(model.special.start) or [model.special.begin or 0]
    most = max(1, min(MAX_NEW_TOKENS, model.config.max_len - len(start)))
    if target is None:
        with nullcontext() if changes is None else change(model, changes):
            written = list(rank_translations(model, [text], max_new_tokens=most)[0][0].tokens)
    else:
        written = _encode(model, target, add_special=False)
    with recorded as trace, torch.no_grad(), _count_layers(model, progress):
        model(tokens, torch.tensor([[*start, *written]], device=on))
    if target is None and len(written) < most and len(model.special.end) == 1:
        # A translation that ends before its limit has ended by its end token.
        end = labels(tokenizer_of(model), model.special.end)
        trace.run.texts["tokens"].following = end
    return trace


@contextmanager
def _count_layers(model: "Model", progress: ProgressCallback) -> Iterator[None]:
    """Report the share of the layers that have run, layer by layer."""
    from glassformer.layers.block import Block

    blocks = [module for module in model.modules() if isinstance(module, Block)]
    n_done = 0

    def count(*_: Any) -> None:
        nonlocal n_done
        n_done += 1
        progress(n_done / len(blocks))

    hooks = [block.register_forward_hook(count) for block in blocks]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _encode(model: "Model", text: str, **options: bool) -> list[int]:
    """The tokens of a text that is short enough to be looked at; a long one is not read to its end.

    Models without learned positions would take any text, and hours for a long one.
    """
    from glassformer.generation.continuation import tokenizer_of

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
