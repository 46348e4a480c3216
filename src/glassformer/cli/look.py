"""`glassformer look`: what attends to what in a text, on a real model or in a saved trace."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from glassformer.cli import saved
from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.errors import TraceError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.models.checkpoints import Model
    from glassformer.observe import Site, Trace

_FEW = 12  # tokens whose weights can be shown as numbers
_ROWS = 40  # rows of a list


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("look", cls=Command, help=say("look.help"))
    def look(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("look.text"))] = None,
        target: Annotated[
            str | None, typer.Option("--target", metavar="TEXT", help=say("look.target"))
        ] = None,
        model: Annotated[str | None, saved.model_option(language)] = None,
        site: Annotated[
            str | None, typer.Option("--site", metavar="NAME", help=say("look.site"))
        ] = None,
        layer: Annotated[
            int | None, typer.Option("--layer", metavar="N", help=say("look.layer"))
        ] = None,
        head: Annotated[
            int | None, typer.Option("--head", metavar="N", help=say("look.head"))
        ] = None,
        word: Annotated[
            str | None, typer.Option("--word", metavar="TOKEN", help=say("look.word"))
        ] = None,
        png: Annotated[
            str | None, typer.Option("--png", metavar="FILE", help=say("look.png"))
        ] = None,
        svg: Annotated[
            str | None, typer.Option("--svg", metavar="FILE", help=say("look.svg"))
        ] = None,
        html: Annotated[
            str | None, typer.Option("--html", metavar="FILE", help=say("look.html"))
        ] = None,
        trace: Annotated[
            str | None, typer.Option("--trace", metavar="FILE", help=say("look.trace"))
        ] = None,
        device: Annotated[str | None, saved.device_option(language)] = None,
        dtype: Annotated[str | None, saved.dtype_option(language)] = None,
        as_json: Annotated[bool, saved.json_option(language)] = False,
    ) -> None:
        # Imported here: other commands need no models.
        from glassformer.observe import Trace

        if text is None and trace is not None:
            seen = Trace.load(trace)
        else:
            sentence = saved.text_or_input(text, language)
            loaded = saved.load_saved(model, device, dtype, language)
            seen = traced(loaded, sentence, target)
            if trace is not None:
                seen.save(trace)
        chosen, number = _chosen(seen, site, layer, head)
        for path in (png, svg):
            if path is not None:
                from glassformer.render.figure import draw_figure

                wanted = {png: ".png", svg: ".svg"}[path]
                if Path(path).suffix != wanted:
                    raise TraceError(say("look.error.suffix", suffix=wanted, got=repr(path)))
                draw_figure(seen, path, site=chosen.name, head=number)
        if html is not None:
            from glassformer.render.page import draw_page

            if Path(html).suffix != ".html":
                raise TraceError(say("look.error.suffix", suffix=".html", got=repr(html)))
            draw_page(seen, html, language=language)
        if as_json:
            typer.echo(json.dumps(_as_dict(seen, chosen, number), ensure_ascii=False))
            return
        _show(seen, chosen, number, word, terminal(), language)


def traced(model: "Model", text: str, target: str | None) -> "Trace":
    """The model's attention over a text; an encoder-decoder writes its translation first.

    The written text is read once more in one pass, which gives the same numbers as the steps.
    """
    import torch

    from glassformer.generate import translations
    from glassformer.generate.writing import tokenizer_of
    from glassformer.models import EncoderDecoder
    from glassformer.observe import observe

    tokenizer, on = tokenizer_of(model), model.embedding.weight.device
    tokens = torch.tensor([tokenizer.encode(text)], device=on)
    if tokens.shape[1] == 0:
        raise TraceError("A text to look at must have at least one token; got an empty one.")
    if not isinstance(model, EncoderDecoder):
        with observe(model, outputs=True) as trace, torch.no_grad():
            model(tokens)
        return trace
    if target is None:
        written = list(translations(model, [text])[0][0].tokens)
    else:
        written = tokenizer.encode(target, add_special=False)
    start = list(model.special.start) or [model.special.begin or 0]
    with observe(model, outputs=True) as trace, torch.no_grad():
        model(tokens, torch.tensor([[*start, *written]], device=on))
    return trace


def _chosen(
    trace: "Trace", site: str | None, layer: int | None, head: int | None
) -> "tuple[Site, int]":
    """The site and head asked for; where nothing was, the ones that look most sharply."""
    from glassformer.render.overview import sharpness

    if site is not None:
        sites = [trace[site]]
    else:
        preferred = [s for s in trace if s.name.endswith(".cross")] or list(trace)
        sites = [s for s in preferred if layer is None or s.name.split(".")[1] == str(layer)]
        if not sites:
            layers = sorted({int(s.name.split(".")[1]) for s in preferred})
            raise TraceError(f"Layers are {layers[0]} … {layers[-1]}; got layer={layer}.")
    if head is not None:
        sites[0].entropy(head)  # says so if there is no such head
        if len(sites) > 1:
            sites = [max(sites, key=lambda s: sharpness(s)[head])]
        return sites[0], head
    sharp = [(value, s, h) for s in sites for h, value in enumerate(sharpness(s))]
    _, best, number = max(sharp, key=lambda each: each[0])
    return best, number


def _show(
    trace: "Trace",
    site: "Site",
    head: int,
    word: str | None,
    console: Console,
    language: Language,
) -> None:
    from glassformer.render import Paragraph, draw_map, draw_steps, draw_weights
    from glassformer.render.attended import draw_attended
    from glassformer.render.heat import draw_heat, widest_heat
    from glassformer.render.overview import draw_heads, draw_overview

    say = language.say
    queries, keys = trace.labels(site.queries), trace.labels(site.keys)
    L, S = site.shape[2:]
    row = None if word is None else _place(word, queries, language)
    console.print(draw_overview(trace, language=language))
    console.print()
    console.print(
        Text(say("look.title", site=site.name, head=head, queries=L, keys=S), style="bold")
    )
    console.print()
    if row is not None:
        console.print(draw_steps(site.row(head, row), keys, language=language))
        return
    if L <= _FEW and S <= _FEW and console.width >= 12 + 9 * S:
        console.print(draw_weights(site.weights(head=head).cpu(), queries, keys))
    elif widest_heat(console.width, queries) >= S and L <= _ROWS:
        console.print(draw_heat(site.weights(head=head).cpu(), queries, keys))
    else:
        size = (min(L, 32), min(S, console.width - 2))
        console.print(draw_map(site.map(head, size).share.cpu()))
        console.print(Paragraph(say("look.pooled", rows=size[0], cols=size[1]), style="dim"))
    console.print()
    console.print(Text(say("look.attended"), style="bold"))
    rows = None if L <= _ROWS else range(L - _ROWS, L)
    console.print(draw_attended(site, head, queries, keys, rows=rows))
    console.print()
    console.print(Text(say("look.heads", site=site.name), style="bold"))
    console.print(draw_heads(trace, site, language=language))
    console.print()
    console.print(Paragraph(say("look.note"), style="dim"))
    difference = site.difference_from_output() if site.out is not None else None
    if difference is not None:
        console.print(Paragraph(say("look.difference", value=f"{difference:.1e}"), style="dim"))


def _place(word: str, labels: list[str], language: Language) -> int:
    if word.isdigit() and int(word) < len(labels):
        return int(word)
    bare = [shown.strip("␣").removeprefix("##") for shown in labels]
    if word in bare:
        return bare.index(word)
    shown = ", ".join(labels[:12]) + (", …" if len(labels) > 12 else "")
    raise TraceError(language.say("look.error.word", tokens=shown, got=repr(word)))


def _as_dict(trace: "Trace", site: "Site", head: int) -> dict[str, Any]:
    return {
        "site": site.name,
        "head": head,
        "queries": trace.labels(site.queries),
        "keys": trace.labels(site.keys),
        "entropy": site.entropy(head).tolist(),
        "received": site.received(head).tolist(),
        "weights": site.weights(head=head).tolist()
        if site.shape[2] * site.shape[3] <= 1 << 20
        else None,
        "sites": {each.name: list(each.shape) for each in trace},
    }
