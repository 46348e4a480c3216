"""`glassformer convert`: a saved model in another layout."""

from typing import Annotated

import typer

from glassformer.cli import model_options
from glassformer.cli.completion import complete_choice, complete_model
from glassformer.cli.help import Command
from glassformer.languages import Language


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("convert", cls=Command, help=say("convert.help"))
    def convert(
        source: Annotated[
            str,
            typer.Argument(metavar="MODEL", help=say("saved.model"), autocompletion=complete_model),
        ],
        folder: Annotated[str, typer.Argument(metavar="FOLDER", help=say("convert.folder"))],
        layout: Annotated[
            str,
            typer.Option(
                "--layout",
                metavar="LAYOUT",
                help=say("convert.layout"),
                autocompletion=complete_choice("glassformer", "huggingface", "gguf"),
            ),
        ] = "glassformer",
        dtype: Annotated[
            str | None,
            typer.Option(
                "--dtype", metavar="|".join(model_options.DTYPES), help=say("convert.dtype")
            ),
        ] = None,
        overwrite: Annotated[
            bool, typer.Option("--overwrite", help=say("convert.overwrite"))
        ] = False,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.models.checkpoints import check_target, save
        from glassformer.models.parameters import count_parameters
        from glassformer.models.quantization import weight_kind

        check_target(folder, layout=layout, overwrite=overwrite)
        model = model_options.load_model(source, "cpu", dtype, language, as_saved=True)
        save(model, folder, layout=layout, overwrite=overwrite)
        typer.echo(
            say(
                "convert.done",
                folder=folder,
                layout=layout,
                parameters=f"{count_parameters(model):,}",
                dtype=weight_kind(model),
            )
        )
