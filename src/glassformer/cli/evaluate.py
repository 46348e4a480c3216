"""`glassformer evaluate`: how well a model translates texts it has not seen."""

import json
from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.progress import progress_bar
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.storage import atomic_file


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("evaluate", cls=Command, help=say("evaluate.help"))
    def evaluate(
        source: Annotated[Path, typer.Option("--source", metavar="FILE", help=say("train.source"))],
        target: Annotated[Path, typer.Option("--target", metavar="FILE", help=say("train.target"))],
        model: Annotated[str | None, model_options.model_option(language)] = None,
        to: Annotated[
            str | None, typer.Option("--to", metavar="zh|fr", help=say("translate.to"))
        ] = None,
        beams: Annotated[
            int, typer.Option("--beams", metavar="N", help=say("translate.beams"))
        ] = 5,
        length_penalty: Annotated[
            float, typer.Option("--length-penalty", metavar="A", help=say("translate.penalty"))
        ] = 1.0,
        tokenize: Annotated[
            str, typer.Option("--tokenize", metavar="13a|none|zh", help=say("evaluate.tokenize"))
        ] = "13a",
        remove: Annotated[
            str, typer.Option("--remove", metavar="TEXT", help=say("evaluate.remove"))
        ] = "",
        has_shortlist: Annotated[
            bool, typer.Option("--shortlist", help=say("translate.shortlist"))
        ] = False,
        write: Annotated[
            Path | None, typer.Option("--write", metavar="FILE", help=say("evaluate.write"))
        ] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.generation.beam import check_beams
        from glassformer.text.corpus import read_pairs
        from glassformer.training.evaluation import evaluate_translation
        from glassformer.training.scores import check_scoring

        if write is not None and write.is_file() and write.stat().st_size:
            raise ConfigError(say("evaluate.error.exists", path=write))
        check_beams(beams)
        check_scoring(tokenize)
        pairs, report = read_pairs(source, target)
        loaded = model_options.load_model(model, device, dtype, language)
        with progress_bar(say("translate.running")) as progress:
            scores, found = evaluate_translation(
                loaded,
                pairs,
                to=to,
                beams=beams,
                length_penalty=length_penalty,
                tokenize=tokenize,
                remove=remove,
                shortlist=has_shortlist,
                progress=progress,
            )
        if write is not None:
            with atomic_file(write, ConfigError) as file:
                file.write_text("".join(f"{text}\n" for text in found), encoding="utf-8")
        if as_json:
            typer.echo(json.dumps({**scores, "texts": len(pairs), "left_out": report.n_bad}))
            return
        for name, value in scores.items():
            typer.echo(f"{name:<12}{value:.4f}")
        if report.n_bad:
            typer.echo(say("evaluate.left", n=report.n_bad, total=report.n_lines))
