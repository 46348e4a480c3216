"""Help screens in the reader's language: typer's own have English headings."""

from typing import Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from glassformer.cli.entry import INTERRUPTED, say_interrupted
from glassformer.cli.terminal import terminal
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.legend import draw_legend


class Command(TyperCommand):
    """A command that shows our help."""

    def get_help(self, ctx: Any) -> str:
        return help_text(self, ctx)


class Commands(TyperGroup):
    """A group of commands with our help; Ctrl-C ends them with one line."""

    def get_help(self, ctx: Any) -> str:
        return help_text(self, ctx)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say_interrupted()
            raise typer.Exit(INTERRUPTED) from None


def help_text(command: Any, context: Any) -> str:
    """What a command does, how to call it, and all of its arguments and options."""
    language: Language = context.obj
    say = language.say
    params = command.get_params(context)
    arguments = [p for p in params if p.param_type_name == "argument"]
    options = [p for p in params if p.param_type_name == "option"]
    commands = [command.get_command(context, name) for name in _subcommands(command, context)]
    usage = [context.command_path, *(p.metavar for p in arguments)]
    usage += ["COMMAND"] if commands else []
    usage += [f"[{_option_name(p)}]" for p in options if "--help" not in p.opts]

    parts: list[RenderableType] = [Paragraph(command.help)]
    parts += _section(say("help.usage"), Paragraph(" ".join(usage)))
    if commands:
        parts += _section(say("help.commands"), _draw_entries([(c.name, c.help) for c in commands]))
    if arguments:
        parts += _section(
            say("help.arguments"), _draw_entries([(p.metavar, p.help) for p in arguments])
        )
    texts = [(_option_name(p), say("help.help") if "--help" in p.opts else p.help) for p in options]
    parts += _section(say("help.options"), _draw_entries(texts))
    console = terminal()
    with console.capture() as captured:
        console.print(Group(*parts))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _subcommands(command: Any, context: Any) -> list[str]:
    return command.list_commands(context) if isinstance(command, TyperGroup) else []


def _option_name(param: Any) -> str:
    name = max(param.opts, key=len)
    return f"{name} {param.metavar}" if param.metavar else name


def _draw_entries(texts: list[tuple[str, str]]) -> RenderableType:
    return draw_legend(texts, style="cyan", gap=3)


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return ["", Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]
