"""`glassformer sweep`: which heads, parts or edges carry what two texts differ in."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from glassformer.cli import model_options
from glassformer.cli.completion import complete_choice
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.output_files import check_files, file_options, write_files
from glassformer.cli.progress import progress_bar
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import options
from glassformer.errors import ConfigError, TraceError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.tracing import Trace

OVER = ("heads", "heads-positions", "parts", "parts-positions", "borders-positions", "edges")
METHODS = ("patch", "gradient", "both")


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared, drawn = language.say, options(language), file_options(language)

    @app.command("sweep", cls=Command, help=say("sweep.help"))
    def sweep(
        clean: Annotated[str, typer.Argument(metavar="CLEAN", help=say("sweep.clean"))],
        corrupted: Annotated[str, typer.Argument(metavar="CORRUPTED", help=say("sweep.corrupted"))],
        tokens: Annotated[
            tuple[str, str] | None,
            typer.Option("--tokens", metavar="A B", help=say("sweep.tokens")),
        ] = None,
        over: Annotated[
            str,
            typer.Option(
                "--over",
                metavar="PLACES",
                help=say("sweep.over"),
                autocompletion=complete_choice(*OVER),
            ),
        ] = "heads",
        method: Annotated[
            str,
            typer.Option(
                "--method",
                metavar="|".join(METHODS),
                help=say("sweep.method"),
                autocompletion=complete_choice(*METHODS),
            ),
        ] = "patch",
        senders: Annotated[
            list[str] | None, typer.Option("--sender", metavar="NAME", help=say("sweep.senders"))
        ] = None,
        receivers: Annotated[
            list[str] | None,
            typer.Option("--receiver", metavar="NAME", help=say("sweep.receivers")),
        ] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("lens.usual"))
        ] = None,
        position: Annotated[
            int, typer.Option("--position", metavar="N", help=say("sweep.position"))
        ] = -1,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("sweep.top"))] = 5,
        resume: Annotated[
            Path | None, typer.Option("--resume", metavar="FILE", help=say("sweep.resume"))
        ] = None,
        table: Annotated[
            Path | None, typer.Option("--csv", metavar="FILE", help=say("sweep.csv"))
        ] = None,
        png: Annotated[str | None, drawn["png"]] = None,
        svg: Annotated[str | None, drawn["svg"]] = None,
        pdf: Annotated[str | None, drawn["pdf"]] = None,
        html: Annotated[str | None, drawn["html"]] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        for option, given, known in (("--over", over, OVER), ("--method", method, METHODS)):
            if given not in known:
                listed = ", ".join(known)
                raise ConfigError(
                    say("sweep.error.choice", option=option, known=listed, got=repr(given))
                )
        if top < 1:
            raise ConfigError(say("sweep.error.top", got=top))
        files = {".png": png, ".svg": svg, ".pdf": pdf, ".html": html}
        check_files(files, language)
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.analysis import sweep as patch_everywhere
        from glassformer.analysis.traced_text import EmptyText, trace_text
        from glassformer.models import EncoderDecoder
        from glassformer.paths import user_path
        from glassformer.render.charts.sweep import chart_of_sweep
        from glassformer.render.terminal.sweep import draw_sweep, list_roles
        from glassformer.storage import atomic_file

        usual = "writer" if to is None and target is None else "translator"
        loaded = model_options.load_model(model, device, dtype, language, default=usual)
        if isinstance(loaded, EncoderDecoder) and target is None:
            raise ConfigError(say("sweep.error.target"))
        try:
            before, after = (
                trace_text(loaded, text, target, to, residual=True) for text in (clean, corrupted)
            )
        except EmptyText:
            raise ConfigError(say("look.error.empty")) from None
        pair = tokens or _most_probable([before, after], position, language)
        with progress_bar(say("sweep.running")) as progress:
            found = patch_everywhere(
                loaded,
                before,
                after,
                over=cast(Any, over.replace("-", " × ")),
                metric=pair,
                method=cast(Any, method),
                position=position,
                senders=senders or None,
                receivers=receivers or None,
                resume=resume,
                report=lambda done, total: progress(done / total),
            )
        if table is not None:
            with atomic_file(
                user_path(table, TraceError), TraceError, mark=b"row,column,value"
            ) as new:
                new.write_text(found.as_csv(), "utf-8")
        roles = list_roles(before, found.rows) if over == "heads" else []
        write_files(partial(chart_of_sweep, found, roles=roles), files, language)
        if plain:
            typer.echo(to_json(found.as_dict()))
            return
        console = terminal()
        console.print(draw_sweep(found, roles, width=console.width, top=top, language=language))
        if table is not None:
            typer.echo(say("sweep.saved", file=table))


def _most_probable(
    traces: "list[Trace]", position: int, language: Language
) -> tuple[int | str, int | str]:
    """What each of the two texts makes most probable."""
    found = []
    for trace in traces:
        stream = trace.residual()
        if not -stream.start.shape[1] <= position < stream.start.shape[1]:
            return 0, 1  # the sweep says how many positions there are
        logits = stream.require_readout()(stream.end[:, [position]])
        found.append(int(logits[0, 0].argmax()))
    if found[0] == found[1]:
        raise ConfigError(language.say("sweep.error.tokens"))
    return found[0], found[1]
