"""`glassformer look`: what attends to what in a text, on a real model or in a saved trace."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.output_files import check_files, check_folders
from glassformer.cli.progress import progress_bar
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import ViewRequest, name_changes, open_trace, options
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.tracing import Site, Trace

_MOST_WEIGHTS = 1 << 20  # that are printed as JSON


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared = language.say, options(language)

    @app.command("look", cls=Command, help=say("look.help"))
    def look(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("look.text"))] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("look.usual"))
        ] = None,
        site: Annotated[str | None, shared["site"]] = None,
        layer: Annotated[int | None, shared["layer"]] = None,
        head: Annotated[int | None, shared["head"]] = None,
        word: Annotated[
            str | None, typer.Option("--word", metavar="TOKEN", help=say("look.word"))
        ] = None,
        png: Annotated[
            str | None, typer.Option("--png", metavar="FILE", help=say("look.png"))
        ] = None,
        svg: Annotated[
            str | None, typer.Option("--svg", metavar="FILE", help=say("look.svg"))
        ] = None,
        pdf: Annotated[
            str | None, typer.Option("--pdf", metavar="FILE", help=say("look.pdf"))
        ] = None,
        figure: Annotated[
            str,
            typer.Option(
                "--figure", metavar="head|heads|alignment|entropy|flow", help=say("look.figure")
            ),
        ] = "head",
        pool: Annotated[
            str, typer.Option("--pool", metavar="max|mean", help=say("look.pool"))
        ] = "max",
        scale: Annotated[
            str, typer.Option("--scale", metavar="quantile|row", help=say("look.scale"))
        ] = "quantile",
        no_first_key: Annotated[
            bool, typer.Option("--no-first-key", help=say("look.first.key"))
        ] = False,
        html: Annotated[
            str | None, typer.Option("--html", metavar="FILE", help=say("look.html"))
        ] = None,
        trace: Annotated[str | None, shared["trace"]] = None,
        append: Annotated[bool, typer.Option("--append", help=say("look.append"))] = False,
        run: Annotated[int | None, shared["run"]] = None,
        change: Annotated[str | None, shared["change"]] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        files = {".png": png, ".svg": svg, ".pdf": pdf, ".html": html}
        check_files(files, language)
        check_folders([trace], language)
        figures = [path for path in (png, svg, pdf) if path is not None]
        request = ViewRequest(
            text=text,
            target=target,
            to=to,
            model=model,
            trace=trace,
            run=run,
            device=device,
            dtype=dtype,
            change=change,
        )
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.render.figure.drawing import check_figure, draw_figure
        from glassformer.render.focus import choose_focus, find_token
        from glassformer.render.head_cells import Drawing
        from glassformer.render.sampled_queries import sample_queries
        from glassformer.render.terminal.picture import draw_picture, draw_row
        from glassformer.render.tokens import token_names

        how: Any = {"pool": pool, "scale": scale, "first_key": not no_first_key}
        drawing = Drawing(**how)  # rejects what it does not know
        for path in figures:
            check_figure(Path(path), figure)
        found = open_trace(request, language, append=append, residual=figure == "flow")
        console = terminal()
        with progress_bar(say("look.drawing"), total=None):
            glance = sample_queries(found)
            chosen, number, *_ = choose_focus(glance, site=site, layer=layer, head=head)
            whole = found[chosen.name]
            row = None if word is None else find_token(word, token_names(found, whole)[0], language)
            one = number if figure == "head" else head
            for path in figures:
                draw_figure(
                    found,
                    path,
                    kind=figure,
                    site=chosen.name,
                    head=one,
                    drawing=drawing,
                    language=language,
                )
            if html is not None:
                from glassformer.render.page.document import draw_page

                draw_page(found, html, language=language)
            if plain:
                shown: Any = to_json(_as_dict(found, whole, number))
            elif row is not None:
                shown = draw_row(found, whole, number, row, language=language)
            else:
                shown = draw_picture(
                    glance,
                    chosen,
                    number,
                    width=console.width,
                    drawing=drawing,
                    language=language,
                )
        if plain:
            typer.echo(shown)
        else:
            console.print(shown)
            name_changes(found, language)


def _as_dict(trace: "Trace", site: "Site", head: int) -> dict[str, Any]:
    from glassformer.render.difference import output_difference
    from glassformer.render.tokens import row_labels, token_names

    queries, keys = token_names(trace, site)
    sharpness = float(site.sharpness(head))
    few = site.shape[2] * site.shape[3] <= _MOST_WEIGHTS
    return {
        "site": site.name,
        "head": head,
        "queries": queries,
        "rows": row_labels(trace, site),
        "keys": keys,
        "entropy": site.entropy(head).tolist(),
        "sharpness": None if math.isnan(sharpness) else sharpness,
        "received": site.received(head).tolist(),
        "weights": site.weights(head=head).tolist() if few else None,
        "difference": output_difference(site),
        "sites": {each.name: list(each.shape) for each in trace},
    }
