"""`glassformer compare`: two saved traces, head by head, or by what differs first."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.terminal import terminal
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph

if TYPE_CHECKING:
    from glassformer.analysis import Bisection
    from glassformer.tracing import Trace

_MOST = 8  # queries that are listed
_MOST_LABEL = 24  # cells of a token


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("compare", cls=Command, help=say("compare.help"))
    def compare(
        first: Annotated[str, typer.Argument(metavar="TRACE", help=say("compare.first"))],
        second: Annotated[str, typer.Argument(metavar="TRACE", help=say("compare.second"))],
        bisect: Annotated[bool, typer.Option("--bisect", help=say("compare.bisect"))] = False,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.analysis.comparison import compare
        from glassformer.render.marks import label, visible_token
        from glassformer.render.terminal.head_marks import draw_marks
        from glassformer.render.tokens import row_labels
        from glassformer.tracing import Trace

        a, b = Trace.load(first), Trace.load(second)
        if bisect:
            _bisect(a, b, language, as_json=as_json)
            return
        found = compare(a, b)
        changed = found.most_changed(_MOST)
        if as_json:
            plain = {
                "sites": {name: found.by_head(name).tolist() for name in found.sites},
                "most_changed": [
                    {"site": s, "head": h, "query": q, "distance": d} for s, h, q, d in changed
                ],
                "only_first": found.only_first,
                "only_second": found.only_second,
            }
            typer.echo(json.dumps(plain))
            return
        console = terminal()
        rows = {name: found.by_head(name).tolist() for name in found.sites}
        heads = range(max(map(len, rows.values())))
        console.print(draw_marks("", rows, heads, width=console.width, blank_zero=True))
        console.print(Paragraph(say("compare.legend"), style="dim"))
        console.print()
        console.print(Text(say("compare.changed"), style="bold"))
        for site, head, query, distance in changed:
            token = label(row_labels(a, a[site])[query], _MOST_LABEL).plain
            line = say("compare.row", site=visible_token(site), head=head, query=query, token=token)
            console.print(Text.assemble((f"{distance:.3f}  ", "cyan"), line))
        for names, key in ((found.only_first, "first"), (found.only_second, "second")):
            if names:
                labels = {"first": say("compare.only.first"), "second": say("compare.only.second")}
                listed = ", ".join(map(visible_token, names))
                console.print(Paragraph(f"{labels[key]} {listed}", style="dim"))


def _bisect(a: "Trace", b: "Trace", language: Language, *, as_json: bool) -> None:
    """What differs first between two runs, as text or as JSON."""
    from glassformer.analysis import bisect
    from glassformer.cli.progress import progress_bar
    from glassformer.render.terminal.bisection import draw_bisection

    with progress_bar(language.say("compare.bisecting")) as progress:
        found = bisect(a, b, progress=progress)
    if as_json:
        typer.echo(to_json(_as_dict(found, language)))
    else:
        terminal().print(draw_bisection(found, language=language))


def _as_dict(found: "Bisection", language: Language) -> dict[str, Any]:
    origin, cell = found.origin, found.cell
    return {
        "verdict": found.verdict(language),
        "origin": None if origin is None else asdict(origin),
        "layers": [asdict(layer) for layer in found.layers],
        "token": None if found.token is None else asdict(found.token),
        "cell": None
        if cell is None
        else {
            "site": cell.site,
            "head": cell.head,
            "query": cell.query,
            "key": cell.key,
            "first": cell.first.as_dict(),
            "second": cell.second.as_dict(),
        },
        "tokens": found.n_tokens,
        "largest": found.largest,
        "dtypes": found.dtypes,
    }
