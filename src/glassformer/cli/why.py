"""`glassformer why`: what made a model prefer one token to another, tested by ablation."""

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.output_files import check_files, file_options, write_tree_files
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import ViewRequest, open_trace, options
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.analysis import Reason, Why


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared, drawn = language.say, options(language), file_options(language)

    @app.command("why", cls=Command, help=say("why.help"))
    def why(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("lens.text"))] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("lens.usual"))
        ] = None,
        token: Annotated[
            str | None, typer.Option("--token", metavar="TOKEN", help=say("why.token"))
        ] = None,
        against: Annotated[
            str | None, typer.Option("--against", metavar="TOKEN", help=say("why.against"))
        ] = None,
        position: Annotated[
            int, typer.Option("--position", metavar="N", help=say("why.position"))
        ] = -1,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("why.top"))] = 8,
        depth: Annotated[int, typer.Option("--depth", metavar="N", help=say("why.depth"))] = 2,
        branches: Annotated[
            int, typer.Option("--branches", metavar="K", help=say("why.branches"))
        ] = 3,
        reference: Annotated[
            str | None, typer.Option("--reference", metavar="TEXT", help=say("why.reference"))
        ] = None,
        png: Annotated[str | None, drawn["png"]] = None,
        svg: Annotated[str | None, drawn["svg"]] = None,
        pdf: Annotated[str | None, drawn["pdf"]] = None,
        html: Annotated[str | None, drawn["html"]] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        files = {".png": png, ".svg": svg, ".pdf": pdf, ".html": html}
        check_files(files, language)
        request = ViewRequest(
            text=text,
            target=target,
            to=to,
            model=model,
            device=device,
            dtype=dtype,
        )
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.analysis import why as explain
        from glassformer.analysis.neutral_text import record_reference
        from glassformer.render.charts.why import tree_of_why
        from glassformer.render.terminal.why import draw_why

        trace = open_trace(request, language, residual=True, usual="writer")
        found = explain(
            trace,
            token,
            against=against,
            position=position,
            top=top,
            depth=depth,
            branches=branches,
            reference=record_reference(trace.holds, reference),
        )
        write_tree_files(partial(tree_of_why, found), files, language)
        if plain:
            typer.echo(to_json(_as_dict(found)))
        else:
            terminal().print(draw_why(found, language=language))


def _as_plain_reason(reason: "Reason") -> dict[str, Any]:
    """A node without what it has not."""
    plain = asdict(replace(reason, reasons=()))
    if not reason.reasons:
        del plain["rest"]
    given = {name: value for name, value in plain.items() if value not in (None, "", ())}
    if reason.reasons:
        given["reasons"] = [_as_plain_reason(each) for each in reason.reasons]
    return given


def _as_dict(found: "Why") -> dict[str, Any]:
    verdict = found.verdict
    return {
        "token": found.token,
        "against": found.against,
        "position": found.position,
        "logit": found.logit,
        "reasons": [_as_plain_reason(reason) for reason in found.reasons],
        "rest": found.rest,
        "remainder": found.remainder,
        "frozen": found.frozen,
        "named": found.named,
        "verdict": None
        if verdict is None
        else {
            "whole": verdict.whole,
            "kept": verdict.kept,
            "removed": verdict.removed,
            "none": verdict.none,
            "carried": verdict.carried,
            "needed": verdict.needed,
            "random_kept": verdict.random_kept,
            "random_removed": verdict.random_removed,
            "telling": verdict.is_telling,
            "enough": verdict.is_enough,
            "necessary": verdict.is_needed,
            "faithful": verdict.is_faithful,
        },
    }
