"""`glassformer train`: a recipe, or two files, to a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from glassformer.cli import model_options
from glassformer.cli.completion import complete_model, complete_setting
from glassformer.cli.entry import INTERRUPTED
from glassformer.cli.help import Command
from glassformer.cli.terminal import complain
from glassformer.errors import ConfigError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.training import Recipe


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("train", cls=Command, help=say("train.help"))
    def train(
        recipe: Annotated[
            Path | None, typer.Argument(metavar="[RECIPE.toml]", help=say("train.recipe"))
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", metavar="DIR", help=say("train.out"))
        ] = None,
        resume: Annotated[bool, typer.Option("--resume", help=say("train.resume"))] = False,
        changes: Annotated[
            list[str] | None,
            typer.Option(
                "--set",
                metavar="KEY=VALUE",
                help=say("train.set"),
                autocompletion=complete_setting,
            ),
        ] = None,
        data: Annotated[
            Path | None, typer.Option("--data", metavar="DIR", help=say("train.data"))
        ] = None,
        source: Annotated[
            Path | None, typer.Option("--source", metavar="FILE", help=say("train.source"))
        ] = None,
        target: Annotated[
            Path | None, typer.Option("--target", metavar="FILE", help=say("train.target"))
        ] = None,
        text: Annotated[
            Path | None, typer.Option("--text", metavar="FILE", help=say("train.text"))
        ] = None,
        origin: Annotated[
            str | None,
            typer.Option(
                "--from", metavar="MODEL", help=say("train.from"), autocompletion=complete_model
            ),
        ] = None,
        lora: Annotated[
            int | None, typer.Option("--lora", metavar="RANK", help=say("train.lora"))
        ] = None,
        to: Annotated[
            str | None, typer.Option("--to", metavar="zh|fr", help=say("train.to"))
        ] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.training import TrainingInterrupted
        from glassformer.training import train as run

        overrides = [*(changes or [])]
        if data is not None:
            overrides.append(f"data.folder={str(data.absolute())!r}")
        if lora is not None:
            overrides.append(f"model.lora.rank={lora}")
        own = OwnFiles(source, target, text, origin, to)
        chosen = _choose_recipe(recipe, own, out, resume, overrides, language)
        try:
            result = run(chosen, out=out, resume=resume, device=device)
        except TrainingInterrupted as stop:
            complain(Exception(str(stop)))
            raise typer.Exit(INTERRUPTED) from None
        if not result.is_main:  # one of the processes reports for all
            return
        typer.echo(say("train.done", steps=result.steps, folder=result.model))
        for name, value in result.scores.items():
            typer.echo(f"  {name:<12}{value:.4f}")
        verb = {"translation": "translate", "language": "generate", "masked": "fill"}
        if chosen.task in verb:
            typer.echo(
                say("train.next", command=f"glassformer {verb[chosen.task]} --model {result.model}")
            )


class OwnFiles(NamedTuple):
    """A user's own files, and the saved model to fine-tune."""

    source: Path | None
    target: Path | None
    text: Path | None
    origin: str | None
    to: str | None

    def recipe(self, language: Language) -> "Recipe | None":
        """The default recipe for them; None if there are no files."""
        from glassformer.training.default_recipes import (
            finetuning_recipe,
            language_recipe,
            translation_recipe,
        )

        source, target, text = (str(each or "") for each in self[:3])
        if not (source or target or text):
            return None
        if not text and not (source and target):
            raise ConfigError(language.say("train.error.pair"))
        if self.origin is not None:
            return finetuning_recipe(
                self.origin, source=source, target=target, text=text, to=self.to
            )
        return language_recipe(text) if text else translation_recipe(source, target)


def _choose_recipe(
    path: Path | None,
    own: OwnFiles,
    out: Path | None,
    resume: bool,
    overrides: list[str],
    language: Language,
) -> "Recipe":
    from glassformer.training import Recipe
    from glassformer.training.recipe_files import read_recipe

    pair = own.source is not None or own.target is not None
    if sum([path is not None, pair, own.text is not None]) > 1:
        raise ConfigError(language.say("train.error.several"))
    if own.to is not None and (own.origin is None or not pair):
        raise ConfigError(language.say("train.error.to"))
    default = own.recipe(language)
    if default is not None:
        return _override(default, overrides)
    if own.origin is not None:
        raise ConfigError(language.say("train.error.from"))
    if path is not None:
        return Recipe.from_toml(path, overrides)
    if resume and out is not None:
        return read_recipe(out.expanduser(), overrides)
    raise ConfigError(language.say("train.error.nothing"))


def _override(recipe: "Recipe", overrides: list[str]) -> "Recipe":
    from glassformer.settings import as_plain
    from glassformer.training import Recipe

    return Recipe.from_dict(as_plain(recipe, keep_none=False), overrides).resolve_paths(Path.cwd())
