"""From the words of a command line to the command that runs, and to its exit code."""

import json
import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

import glassformer
from glassformer.cli import (
    change,
    compare,
    convert,
    demo,
    embed,
    evaluate,
    fill,
    generate,
    heads,
    lab,
    learn,
    lens,
    look,
    mask,
    models,
    practice,
    quiz,
    serve,
    shapes,
    steps,
    sweep,
    train,
    translate,
    usage,
    why,
)
from glassformer.cli.completion import translate_completion_options
from glassformer.cli.help import Commands
from glassformer.cli.option_names import name_options
from glassformer.cli.terminal import complain, write_any_character
from glassformer.errors import ConfigError, GlassformerError
from glassformer.languages import Language, detect

WRONG = 2
COMMANDS = (
    demo,
    serve,
    steps,
    look,
    lens,
    why,
    change,
    sweep,
    heads,
    compare,
    mask,
    models,
    shapes,
    learn,
    quiz,
    generate,
    translate,
    train,
    evaluate,
    fill,
    embed,
    convert,
    lab,
    practice,
)


def run_words(argv: Sequence[str]) -> int:
    """Run a command line and return its exit code; errors are one line on standard error."""
    write_any_character()
    try:
        choice, words = take_language(argv)
        return _run(words or ["--help"], detect(os.environ, choice))
    except GlassformerError as error:
        complain(error)
        return WRONG
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a file without permission, a name that none can have
        name = "" if error.filename is None else f"{str(error.filename)[:200]}: "
        complain(GlassformerError(f"{name}{error.strerror or error}."))
        return WRONG


def _run(words: list[str], language: Language) -> int:
    command = build(language)
    try:
        code = command(words, prog_name="glassformer", standalone_mode=False)
    except usage.UsageError as error:
        raise ConfigError(usage.describe(error, command, words, language)) from None
    except GlassformerError as error:
        named, _ = usage.find_command(command, words)
        raise GlassformerError(name_options(str(error), named.params)) from None
    return code if isinstance(code, int) else 0


def take_language(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Split off --lang, which may appear anywhere before a bare --.

    It is read first because the help texts are in the language that it names.

    >>> take_language(["demo", "--lang", "zh", "--json"])
    ('zh', ['demo', '--json'])
    """
    choice, rest = None, []
    left = iter(words)
    for word in left:
        if word == "--":
            rest += [word, *left]
        elif word.startswith("--lang="):
            choice = word.removeprefix("--lang=")
        elif word == "--lang":
            choice = next(left, None)
            if choice is None:
                rest.append(word)  # typer says that something is missing
        else:
            rest.append(word)
    return choice, rest


def build(language: Language) -> Any:
    """The whole command line in one language, as typer's command."""
    say = language.say
    app = typer.Typer(
        cls=Commands,
        help=say("app.help"),
        context_settings={"obj": language, "help_option_names": ["--help", "-h"]},
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def start(
        # Read by take_language before typer sees it; declared so that the help shows it.
        _lang: Annotated[
            str | None, typer.Option("--lang", metavar="en|zh", help=say("app.lang"))
        ] = None,
        version: Annotated[bool, typer.Option("--version", help=say("app.version"))] = False,
        as_json: Annotated[bool, typer.Option("--json", help=say("app.json"))] = False,
    ) -> None:
        if version:
            typer.echo(_version_text(as_json))
            raise typer.Exit
        if as_json:
            raise ConfigError(say("app.error.json"))

    for command in COMMANDS:
        command.add(app, language)
    built = get_command(app)
    translate_completion_options(built, language)
    return built


def _version_text(as_json: bool) -> str:
    if not as_json:
        return f"glassformer {glassformer.__version__}"
    from glassformer.cli.version import describe_installation  # loads torch

    return json.dumps(describe_installation(), indent=2)
