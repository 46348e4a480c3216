"""`glassformer shapes`: every tensor shape in a model, step by step."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.completion import complete_choice, complete_config
from glassformer.cli.help import Command
from glassformer.cli.known_names import model_names
from glassformer.cli.models import format_bytes, format_count
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.paths import user_path

if TYPE_CHECKING:
    from glassformer.models import Config
    from glassformer.models.description import Description

_FAMILIES = ("decoder", "encoder", "encoder_decoder")
# What a configuration of one's own has where no option says otherwise.
_SMALL = {"vocab_size": 8000, "dim": 256, "n_layers": 4, "n_heads": 4, "max_len": 512}


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    def size(name: str, metavar: str, text: str) -> Any:
        return typer.Option(name, metavar=metavar, help=text)

    @app.command("shapes", cls=Command, help=say("shapes.help"))
    def shapes(
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="[MODEL]", help=say("shapes.model"), autocompletion=complete_config
            ),
        ] = None,
        dim: Annotated[int | None, size("--dim", "C", say("shapes.letter.c"))] = None,
        heads: Annotated[int | None, size("--heads", "H", say("shapes.letter.h"))] = None,
        kv_heads: Annotated[int | None, size("--kv-heads", "K", say("shapes.kvheads"))] = None,
        layers: Annotated[int | None, size("--layers", "N", say("shapes.layers"))] = None,
        hidden: Annotated[int | None, size("--hidden-dim", "F", say("shapes.letter.f"))] = None,
        vocab: Annotated[int | None, size("--vocab-size", "V", say("shapes.letter.v"))] = None,
        family: Annotated[
            str | None,
            typer.Option(
                "--family",
                metavar="|".join(_FAMILIES),
                help=say("shapes.family"),
                autocompletion=complete_choice(*_FAMILIES),
            ),
        ] = None,
        batch: Annotated[int | None, size("--batch", "B", say("shapes.batch"))] = None,
        length: Annotated[int | None, size("--length", "L", say("shapes.length"))] = None,
        context: Annotated[int | None, size("--context", "S", say("shapes.context"))] = None,
        as_json: Annotated[bool, typer.Option("--json", help=say("shapes.json"))] = False,
    ) -> None:
        sizes = {
            "dim": dim,
            "n_heads": heads,
            "n_kv_heads": kv_heads,
            "n_layers": layers,
            "hidden_dim": hidden,
            "vocab_size": vocab,
        }
        changes = {field: value for field, value in sizes.items() if value is not None}
        if name is None and not changes and family is None:
            raise ConfigError(say("shapes.error.nothing"))
        if name is not None and family is not None:
            raise ConfigError(say("shapes.error.family"))
        if family is not None and family not in _FAMILIES:
            known = ", ".join(_FAMILIES)
            raise ConfigError(say("shapes.error.families", known=known, got=repr(family)))
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.models.description import describe
        from glassformer.models.shapes import shapes
        from glassformer.render.terminal.legend import draw_legend
        from glassformer.render.terminal.shapes import draw_shapes

        if name is None:
            config = build_config(family or "decoder", changes)
        else:
            config = read_config(name, language).replace(**changes)
        trace = shapes(config, name=name, batch=batch, length=length, context=context)
        totals = describe(config)
        if as_json:
            typer.echo(json.dumps({**trace.as_dict(), "totals": totals.as_dict()}))
        else:
            console = terminal()
            console.print(draw_shapes(trace, language=language))
            console.print()
            console.print(draw_legend(list_totals(totals, language)))


def list_totals(totals: "Description", language: Language) -> list[tuple[str, str]]:
    """The size of the whole model: its parameters, and what it caches for each token."""
    say, n, active = language.say, totals.parameters, totals.active_parameters
    parameters = say("shapes.total.parameters")
    if active < n:
        parameters = say("shapes.total.active", n=format_count(active))
    listed = [(format_count(n), parameters)]
    if totals.cache_bytes_per_token:
        listed.append((format_bytes(totals.cache_bytes_per_token), say("shapes.total.cache")))
    return listed


def build_config(family: str, sizes: dict[str, int]) -> "Config":
    """A small modern Transformer, pre-norm with rotary positions, with the sizes that are given."""
    from glassformer.models import Config, Positions

    settings: dict[str, Any] = {**_SMALL, **sizes}
    return Config(family=family, positions=Positions(kind="rotary"), **settings)  # type: ignore[arg-type]


def read_config(name: str, language: Language) -> "Config":
    """The config of a preset, an included model, or a saved one."""
    from glassformer.models import PRESETS
    from glassformer.models.checkpoints import load_config

    if name in PRESETS:
        return PRESETS[name]
    if name in model_names() or name.startswith("hf://") or user_path(name).exists():
        return load_config(name)
    presets = ", ".join([*model_names(), *PRESETS])
    raise ConfigError(language.say("shapes.error.name", presets=presets, got=repr(name)))
