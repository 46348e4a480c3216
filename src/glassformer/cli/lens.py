"""`glassformer lens`: what a model would say after every layer.

With --train it makes a tuned or a Jacobian lens, which --lens then looks through.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import model_options
from glassformer.cli.completion import complete_choice
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.output_files import check_files, file_options, write_files
from glassformer.cli.progress import progress_bar
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import ViewRequest, name_changes, open_trace, options
from glassformer.errors import ConfigError, TraceError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.analysis import AffineLens, Lens

KINDS = ("tuned", "jacobian")
_MOST_CHARACTERS = {"tuned": 1 << 20, "jacobian": 1 << 16}  # of a text that a lens is made from


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared, drawn = language.say, options(language), file_options(language)

    @app.command("lens", cls=Command, help=say("lens.help"))
    def lens(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("lens.text"))] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("lens.usual"))
        ] = None,
        parts: Annotated[bool, typer.Option("--parts", help=say("lens.parts"))] = False,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("lens.top"))] = 5,
        through: Annotated[
            Path | None, typer.Option("--lens", metavar="FILE", help=say("lens.through"))
        ] = None,
        train: Annotated[
            Path | None, typer.Option("--train", metavar="FILE", help=say("lens.train"))
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", metavar="FILE", help=say("lens.out"))
        ] = None,
        kind: Annotated[
            str,
            typer.Option(
                "--kind",
                metavar="|".join(KINDS),
                help=say("lens.kind"),
                autocompletion=complete_choice(*KINDS),
            ),
        ] = "tuned",
        steps: Annotated[int, typer.Option("--steps", metavar="N", help=say("lens.steps"))] = 200,
        png: Annotated[str | None, drawn["png"]] = None,
        svg: Annotated[str | None, drawn["svg"]] = None,
        pdf: Annotated[str | None, drawn["pdf"]] = None,
        html: Annotated[str | None, drawn["html"]] = None,
        change: Annotated[str | None, shared["change"]] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        if train is not None or out is not None:
            if train is None or out is None:
                raise ConfigError(say("lens.error.pair"))
            if text is not None or through is not None:
                raise ConfigError(say("lens.error.train"))
            loading = model, device, dtype
            _make_lens(train, out, kind, steps, loading, is_plain=plain, language=language)
            return
        files = {".png": png, ".svg": svg, ".pdf": pdf, ".html": html}
        check_files(files, language)
        request = ViewRequest(
            text=text,
            target=target,
            to=to,
            model=model,
            device=device,
            dtype=dtype,
            change=change,
        )
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.analysis.affine_lens import AffineLens
        from glassformer.analysis.lens import check_top, logit_lens
        from glassformer.render.charts.lens import chart_of_lens
        from glassformer.render.terminal.lens import draw_lens

        check_top(top)
        maps = None if through is None else AffineLens.load(through)
        trace = open_trace(request, language, residual=True, usual="writer")
        found = logit_lens(trace, lens=maps, top=top)
        write_files(partial(chart_of_lens, found, parts=parts), files, language)
        if plain:
            typer.echo(to_json(_as_dict(found)))
            return
        console = terminal()
        console.print(draw_lens(found, width=console.width, parts=parts, language=language))
        name_changes(trace, language)


def _make_lens(
    source: Path,
    out: Path,
    kind: str,
    steps: int,
    loading: tuple[str | None, str | None, str | None],
    *,
    is_plain: bool,
    language: Language,
) -> None:
    """Make a lens from the text of a file, save it and show how well it reads."""
    from glassformer.analysis import fit_jacobian_lens, train_lens
    from glassformer.models import EncoderDecoder
    from glassformer.render.terminal.lens import draw_divergences
    from glassformer.text.corpus import read_lines

    say = language.say
    if kind not in KINDS:
        raise ConfigError(say("lens.error.kind", known=", ".join(KINDS), got=repr(kind)))
    if steps < 0:
        raise ConfigError(say("lens.error.steps", got=steps))
    _check_place(out, language)
    lines, _ = read_lines(source)
    text = "\n".join(lines)
    most = _MOST_CHARACTERS[kind]
    if len(text) > most:
        typer.echo(say("lens.cut", n=f"{most:,}", total=f"{len(text):,}"), err=True)
    model = model_options.load_model(*loading, language, default="writer")
    if isinstance(model, EncoderDecoder):
        raise ConfigError(say("lens.error.pairs"))
    with progress_bar(say("lens.training")) as progress:
        if kind == "tuned":
            lens = train_lens(model, [text[:most]], steps=steps, progress=progress)
        else:
            lens = fit_jacobian_lens(model, [text[:most]], progress=progress)
    lens.save(out)
    if is_plain:
        typer.echo(to_json({**_as_scores(lens), "file": str(out)}))
        return
    terminal().print(draw_divergences(lens, language=language))
    named = "" if loading[0] is None else f" --model {loading[0]}"
    typer.echo(say("lens.saved", file=out))
    typer.echo(say("train.next", command=f"glassformer lens{named} --lens {out}"))


def _check_place(out: Path, language: Language) -> None:
    """Reject a place where no lens can be written, before the work of making it."""
    from glassformer.analysis.affine_lens import AffineLens
    from glassformer.paths import user_path

    place = user_path(out, TraceError)
    if not place.absolute().parent.is_dir():
        raise ConfigError(language.say("look.error.folder", folder=place.parent))
    if place.exists():
        try:
            AffineLens.load(place)
        except TraceError:
            raise ConfigError(language.say("lens.error.exists", path=out)) from None


def _as_scores(lens: "AffineLens") -> dict[str, Any]:
    return {
        "kind": lens.kind,
        "borders": lens.borders,
        "plain": lens.plain,
        "mapped": lens.mapped,
    }


def _as_dict(lens: "Lens") -> dict[str, Any]:
    return {
        "borders": lens.borders,
        "positions": lens.positions,
        "tokens": lens.labels,
        "probabilities": lens.probabilities.tolist(),
        "entropy": lens.entropy.tolist(),
        "divergence": lens.divergence.tolist(),
        "rank": lens.rank.tolist(),
    }
