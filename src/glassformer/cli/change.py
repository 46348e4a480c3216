"""`glassformer change`: a text with an intervention and without it, side by side."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len
from rich.text import Text

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import (
    ViewRequest,
    name_changes,
    open_model,
    options,
    read_change,
    run_text,
)
from glassformer.errors import ConfigError, TraceError
from glassformer.languages import Language
from glassformer.paths import user_path

if TYPE_CHECKING:
    from glassformer.analysis.effects import Effect
    from glassformer.models.checkpoints import Model
    from glassformer.tracing import Trace
    from glassformer.tracing.interventions import Changes


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared = language.say, options(language)

    @app.command("change", cls=Command, help=say("change.help"))
    def change(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("lens.text"))] = None,
        interventions: Annotated[str | None, shared["change"]] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("lens.usual"))
        ] = None,
        position: Annotated[
            int | None, typer.Option("--position", metavar="N", help=say("change.position"))
        ] = None,
        tokens: Annotated[
            int, typer.Option("--tokens", metavar="N", help=say("change.continue"))
        ] = 0,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("change.top"))] = 5,
        trace: Annotated[
            str | None, typer.Option("--trace", metavar="FILE", help=say("change.trace"))
        ] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        if interventions is None:
            raise ConfigError(say("change.error.none"))
        if tokens < 0:
            raise ConfigError(say("change.error.tokens", got=tokens))
        place = None if trace is None else user_path(trace, TraceError)
        if place is not None and not place.absolute().parent.is_dir():
            raise TraceError(say("look.error.folder", folder=place.parent))
        request = ViewRequest(
            text=text,
            target=target,
            to=to,
            model=model,
            device=device,
            dtype=dtype,
        )
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.analysis.effects import measure_effect
        from glassformer.analysis.lens import check_top
        from glassformer.render.terminal.effect import draw_effect
        from glassformer.tracing import rerun

        check_top(top)
        changes = read_change(interventions, language)
        loaded, sentence = open_model(request, language, usual="writer")
        sentence = _write_gaps(loaded, sentence)
        before = run_text(loaded, sentence, request, language, residual=True)
        after = rerun(before, changes)
        at = _choose_position(loaded, before) if position is None else position
        found = measure_effect(before, after, position=at, top=top)
        written = [_write(loaded, sentence, request, tokens, each) for each in (None, changes)]
        if place is not None:
            after.save(place)
        if plain:
            typer.echo(to_json({"changes": str(changes), "written": written, **_as_dict(found)}))
            return
        console = terminal()
        names = say("change.before"), say("change.after")
        width = max(map(cell_len, names)) + 2
        for name, each in zip(names, written, strict=True):
            if each is not None:
                space = " " * (width - cell_len(name))
                console.print(Text.assemble((name + space, "dim"), each), soft_wrap=True)
        if written[0] is not None:
            console.print()
        console.print(draw_effect(found, before, after, width=console.width, language=language))
        name_changes(after, language)


def _write_gaps(model: "Model", sentence: str) -> str:
    """A text for an encoder, with the gaps written as its tokenizer does."""
    from glassformer.generation.continuation import tokenizer_of
    from glassformer.generation.encoder_tasks import GAP
    from glassformer.models import Encoder

    if not isinstance(model, Encoder) or model.special.mask is None:
        return sentence
    return sentence.replace(GAP, tokenizer_of(model).piece(model.special.mask))


def _choose_position(model: "Model", trace: "Trace") -> int | None:
    """The first gap of a text with gaps, of a translation where it moved most, else the last."""
    from glassformer.models import EncoderDecoder

    if isinstance(model, EncoderDecoder):
        return None
    mask = model.special.mask
    gaps = (trace.run.texts["tokens"].tokens[0] == (-1 if mask is None else mask)).nonzero()
    return int(gaps[0]) if len(gaps) else -1


def _write(
    model: "Model", sentence: str, request: ViewRequest, n: int, changes: "Changes | None"
) -> str | None:
    """What the model writes: a translation, or a continuation where one is asked for."""
    from glassformer.generation import generate, translate
    from glassformer.models import Decoder, EncoderDecoder
    from glassformer.tracing import change

    is_pair = isinstance(model, EncoderDecoder) and request.target is None
    if not is_pair and not (isinstance(model, Decoder) and n):
        return None
    with nullcontext() if changes is None else change(model, changes):
        if isinstance(model, EncoderDecoder):
            return translate(model, sentence, to=request.to)
        assert isinstance(model, Decoder)
        return sentence + generate(model, sentence, max_new_tokens=n)


def _as_dict(found: "Effect") -> dict[str, Any]:
    heads, best = found.heads, found.most_changed_head()
    return {
        "position": found.position,
        "positions": found.positions,
        "tokens": [shift._asdict() for shift in found.tokens],
        "divergence": found.divergence.tolist(),
        "parts": [part._asdict() for part in found.parts],
        "heads": None
        if heads is None
        else {name: heads.by_head(name).tolist() for name in heads.sites},
        "most_changed": None if best is None else {"site": best[0], "head": best[1]},
    }
