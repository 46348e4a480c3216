"""What `look`, `steps`, `lens`, `why` and `change` share: a text on a model or a saved trace."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from glassformer.cli import model_options
from glassformer.cli.progress import progress_bar
from glassformer.cli.readability import is_readable
from glassformer.errors import ConfigError, InterventionError, TraceError
from glassformer.languages import Language
from glassformer.paths import user_path

if TYPE_CHECKING:
    from glassformer.models.checkpoints import Model
    from glassformer.tracing import Trace
    from glassformer.tracing.interventions import Changes


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
    from glassformer.analysis.traced_text import EmptyText, trace_text

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
