"""What `look` and `steps` share: a text on a model or a saved trace, and which head of it."""

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from glassformer.cli import model_options
from glassformer.errors import TraceError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.models.checkpoints import Model
    from glassformer.tracing import Trace

_LEAST_LIMIT = 4096  # tokens that any model may be asked for, whatever it was made for
_CHARACTERS = 32  # of a text for each token that is allowed: enough to know that it is too long


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
    }


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a command was told to look at."""

    text: str | None
    target: str | None
    to: str | None
    model: str | None
    trace: str | None
    run: int | None
    device: str | None
    dtype: str | None

    @property
    def is_saved(self) -> bool:
        """Whether a trace is to be opened, and no model run."""
        return self.text is None and self.trace is not None


def seen(wish: Wish, language: Language, *, append: bool = False) -> "Trace":
    """The trace in a file, or that of a text, which --trace saves."""
    # Imported here: other commands need no models.
    from glassformer.tracing import Trace

    if append and (wish.trace is None or wish.is_saved):
        raise TraceError(language.say("look.error.append"))
    if wish.trace is not None and wish.is_saved:
        with Console(stderr=True).status(language.say("saved.loading", source=wish.trace)):
            found = Trace.load(wish.trace)
        return found if wish.run is None else found.only(wish.run)
    if wish.run is not None:
        raise TraceError(language.say("look.error.run"))
    sentence = model_options.text_or_input(wish.text, language)
    usual = "reader" if wish.to is None and wish.target is None else "translator"
    model = model_options.load_saved(wish.model, wish.device, wish.dtype, language, usual=usual)
    found = traced(model, sentence, wish.target, wish.to)
    if wish.trace is not None and append:
        found.append(wish.trace)
    elif wish.trace is not None:
        found.save(wish.trace)
    return found


def traced(model: "Model", text: str, target: str | None = None, to: str | None = None) -> "Trace":
    """The model's attention over a text; an encoder-decoder writes its translation first.

    The written text is read once more in one pass, which gives the same numbers as the steps.
    """
    import torch

    from glassformer.generation import addressed, translations
    from glassformer.generation.continuation import tokenizer_of
    from glassformer.generation.translation import MAX_NEW
    from glassformer.models import EncoderDecoder
    from glassformer.text.pieces import labels
    from glassformer.tracing import watch

    if isinstance(model, EncoderDecoder):
        text = addressed(model, text, to)
    on = model.embedding.weight.device
    tokens = torch.tensor([_encoded(model, text)], device=on)
    if tokens.shape[1] == 0:
        raise TraceError("A text to look at must have at least one token; got an empty one.")
    if not isinstance(model, EncoderDecoder):
        with watch(model, outputs=True) as trace, torch.no_grad():
            model(tokens)
        return trace
    start = list(model.special.start) or [model.special.begin or 0]
    most = max(1, min(MAX_NEW, model.config.max_len - len(start)))
    if target is None:
        written = list(translations(model, [text], max_new=most)[0][0].tokens)
    else:
        written = _encoded(model, target, add_special=False)
    with watch(model, outputs=True) as trace, torch.no_grad():
        model(tokens, torch.tensor([[*start, *written]], device=on))
    if target is None and len(written) < most and len(model.special.end) == 1:
        # A translation that ends before its limit has ended by its end token.
        end = labels(tokenizer_of(model), model.special.end)
        trace.run.texts["tokens"].following = end
    return trace


def _encoded(model: "Model", text: str, **options: bool) -> list[int]:
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


def as_json(value: Any) -> str:
    """JSON that can be read, in which nothing steers a terminal."""
    plain = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[^ -~]", lambda found: _escaped(found[0]), plain)


def _escaped(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]
